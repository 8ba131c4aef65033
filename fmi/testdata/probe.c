/* A probe: an FMU that keeps what it is given, answers what it is told to, and
   misbehaves on request. Macros at compile time choose what it lacks or breaks.

   Real:    0 input u, 1 state x with x' = u (a ramp with the derivative of u),
            2 output 2u, 3 time; the others keep what is set.
   Integer: 100 selects a function by its number in the Go table, 101 the status
            that it returns, 102 for how many calls (0 = for ever), 104 whether
            silently; 110 the
            number of calls of doStep; 111 whether the last step could not be
            restored; others keep.
   Boolean: keep.
   String: 13 is null; 14 and 15 stand in a buffer that the next call of any
            getter overwrites; the others keep. */
#include "fmi2.h"
#include <fenv.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef TYPES
#define TYPES "default"
#endif
#ifndef VERSION
#define VERSION "2.0"
#endif

enum {
  fnGetTypesPlatform, fnGetVersion, fnSetDebugLogging, fnInstantiate, fnFreeInstance, fnSetupExperiment,
  fnEnterInitializationMode, fnExitInitializationMode, fnTerminate, fnReset, fnGetReal, fnGetInteger,
  fnGetBoolean, fnGetString, fnSetReal, fnSetInteger, fnSetBoolean, fnSetString, fnGetFMUstate,
  fnSetFMUstate, fnFreeFMUstate, fnSerializedFMUstateSize, fnSerializeFMUstate, fnDeSerializeFMUstate,
  fnGetDirectionalDerivative, fnSetRealInputDerivatives, fnGetRealOutputDerivatives, fnDoStep,
  fnCancelStep, fnGetStatus, fnGetRealStatus, fnGetIntegerStatus, fnGetBooleanStatus, fnGetStringStatus
};

typedef struct {
  double real[64];
  int integer[128], boolean[64];
  char string[16][128];
  double du[4]; /* derivatives of u of orders 1..3 */
} values;

typedef struct {
  const fmi2CallbackFunctions *cb;
  fmi2CallbackFunctions copy;
  char name[64], guid[64], uri[1024], categories[256];
  int visible, logging, tolDefined, stopDefined;
  double tolerance, start, stop;
  values v;
  double *heap; /* by the memory callbacks */
} probe;

static int alive, states, frees, calls;
EXPORT int probe_alive(void) { return alive; }
EXPORT int probe_states(void) { return states; }
EXPORT int probe_calls(void) { return calls; }

/* what answers f: the chosen status if f is the chosen function */
static fmi2Status answer(probe *p, int f) {
  int *c = p->v.integer;
  calls++;
  if (c[101] == 0 || c[100] != f) return fmi2OK;
  int s = c[101];
  if (c[102] > 0 && --c[102] == 0) c[101] = 0;
  if (s != fmi2OK && s != fmi2Pending && !c[104])
    p->cb->logger(p->cb->componentEnvironment, p->name, s, "status", "function %d returns %d at %g of #r3#", f, s, p->v.real[3]);
  return s;
}

EXPORT const char *fmi2GetTypesPlatform(void) { return TYPES; }
EXPORT const char *fmi2GetVersion(void) { return VERSION; }

EXPORT fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String uri,
                                     const fmi2CallbackFunctions *cb, fmi2Boolean visible, fmi2Boolean logging) {
  if (type != fmi2CoSimulation || !cb || strcmp(guid, "{probe}") != 0) {
    if (cb) cb->logger(cb->componentEnvironment, name, fmi2Error, "status", "guid %s is not {probe}", guid);
    return NULL;
  }
  probe *p = cb->allocateMemory(1, sizeof *p);
  for (size_t i = 0; i < sizeof *p; i++)
    if (((char *)p)[i]) return NULL;
  p->cb = cb;
  p->copy = *cb;
  p->heap = cb->allocateMemory(1000, sizeof(double));
  snprintf(p->name, sizeof p->name, "%s", name);
  snprintf(p->guid, sizeof p->guid, "%s", guid);
  snprintf(p->uri, sizeof p->uri, "%s", uri);
  p->visible = visible;
  p->logging = logging;
#ifdef NEEDS_LIBM
  volatile double two = 2;
  p->v.real[10] = sqrt(two);
#endif
#ifdef NEEDS_DEP
  extern int dep_answer(void);
  p->v.integer[10] = dep_answer();
#endif
  alive++;
  return p;
}

EXPORT void fmi2FreeInstance(fmi2Component c) {
  probe *p = c;
  frees++;
  alive--;
  void (*release)(void *) = p->cb->freeMemory;
  release(p->heap);
  release(p);
}

EXPORT fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String category[]) {
  probe *p = c;
  p->logging = on;
  p->categories[0] = 0;
  for (size_t i = 0; i < n; i++) {
    strcat(p->categories, category[i]);
    strcat(p->categories, ";");
  }
  return answer(p, fnSetDebugLogging);
}

EXPORT fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean tolDefined, fmi2Real tol, fmi2Real start,
                                      fmi2Boolean stopDefined, fmi2Real stop) {
  probe *p = c;
  p->tolDefined = tolDefined;
  p->tolerance = tol;
  p->start = start;
  p->stopDefined = stopDefined;
  p->stop = stop;
  p->v.real[3] = start;
  return answer(p, fnSetupExperiment);
}

EXPORT fmi2Status fmi2EnterInitializationMode(fmi2Component c) { return answer(c, fnEnterInitializationMode); }
EXPORT fmi2Status fmi2ExitInitializationMode(fmi2Component c) { return answer(c, fnExitInitializationMode); }
EXPORT fmi2Status fmi2Terminate(fmi2Component c) { return answer(c, fnTerminate); }
EXPORT fmi2Status fmi2Reset(fmi2Component c) {
  fmi2Status s = answer(c, fnReset);
  memset(&((probe *)c)->v, 0, sizeof(values));
  return s;
}

static char passing[128]; /* strings that live until the next getter */
#define ACCESS(Type, member, limit)                                                                               \
  EXPORT fmi2Status fmi2Get##Type(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2##Type v[]) {     \
    probe *p = c;                                                                                                 \
    for (size_t i = 0; i < n; i++) {                                                                              \
      if (vr[i] >= limit) return fmi2Error;                                                                       \
      GET_##Type;                                                                                                 \
    }                                                                                                             \
    return answer(p, fnGet##Type);                                                                                \
  }                                                                                                               \
  EXPORT fmi2Status fmi2Set##Type(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2##Type v[]) { \
    probe *p = c;                                                                                                 \
    fmi2Status s = answer(p, fnSet##Type);                                                                        \
    for (size_t i = 0; i < n && s <= fmi2Warning; i++) {                                                          \
      if (vr[i] >= limit) return fmi2Error;                                                                       \
      SET_##Type;                                                                                                 \
    }                                                                                                             \
    return s;                                                                                                     \
  }
#define GET_Real passing[0] = 0; v[i] = p->v.real[vr[i]]
#define GET_Integer passing[0] = 0; v[i] = p->v.integer[vr[i]]
#define GET_Boolean passing[0] = 0; v[i] = p->v.boolean[vr[i]]
#define GET_String                                                                                                \
  if (i == 0) memset(passing, 0, sizeof passing);                                                                 \
  if (vr[i] == 13) v[i] = NULL;                                                                                   \
  else if (vr[i] < 13) v[i] = p->v.string[vr[i]];                                                                 \
  else v[i] = strcpy(passing + 64 * (vr[i] - 14), p->v.string[vr[i]])
#define SET_Real p->v.real[vr[i]] = v[i]; p->v.real[2] = 2 * p->v.real[0]
#define SET_Integer p->v.integer[vr[i]] = v[i]
#define SET_Boolean p->v.boolean[vr[i]] = v[i]
#define SET_String snprintf(p->v.string[vr[i]], sizeof p->v.string[0], "%s", v[i])
ACCESS(Real, real, 64)
ACCESS(Integer, integer, 128)
ACCESS(Boolean, boolean, 64)
/* disorder leaves other floating-point modes. */
static void disorder(void) {
  fesetround(FE_UPWARD);
#ifdef __x86_64__
  unsigned m;
  __asm__ volatile("stmxcsr %0" : "=m"(m));
  m |= 0x8040; /* flush to zero, denormals are zero */
  __asm__ volatile("ldmxcsr %0" : : "m"(m));
#endif
}

#ifndef LEAN
ACCESS(String, string, 16)

EXPORT fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *s) {
  probe *p = c;
  fmi2Status st = answer(p, fnGetFMUstate);
  if (!*s) {
    *s = malloc(sizeof(values));
    states++;
  }
  memcpy(*s, &p->v, sizeof(values));
  return st;
}
EXPORT fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate s) {
  probe *p = c;
  int entered = fegetround();
  memcpy(&p->v, s, sizeof(values));
  if (p->v.integer[113]) p->v.real[20] = entered;
  if (p->v.integer[112]) disorder();
  return answer(p, fnSetFMUstate);
}
EXPORT fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *s) {
  if (*s) {
    free(*s);
    states--;
  }
  *s = NULL;
  return answer(c, fnFreeFMUstate);
}
EXPORT fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate s, size_t *n) {
  (void)s;
  *n = ((probe *)c)->v.integer[120] ? (size_t)-1 : sizeof(values);
  return answer(c, fnSerializedFMUstateSize);
}
EXPORT fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate s, fmi2Byte b[], size_t n) {
  memcpy(b, s, n);
  return answer(c, fnSerializeFMUstate);
}
EXPORT fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte b[], size_t n, fmi2FMUstate *s) {
  if (n != sizeof(values)) return fmi2Error;
  *s = malloc(n);
  states++;
  memcpy(*s, b, n);
  return answer(c, fnDeSerializeFMUstate);
}
/* dv_i = sum_j (10 vUnknown_i + vKnown_j) dv_j */
EXPORT fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference u[], size_t nu,
                                               const fmi2ValueReference k[], size_t nk, const fmi2Real dk[], fmi2Real du[]) {
  for (size_t i = 0; i < nu; i++) {
    du[i] = 0;
    for (size_t j = 0; j < nk; j++) du[i] += (10. * u[i] + k[j]) * dk[j];
  }
  return answer(c, fnGetDirectionalDerivative);
}
EXPORT fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                              const fmi2Integer order[], const fmi2Real v[]) {
  probe *p = c;
  for (size_t i = 0; i < n; i++) {
    if (order[i] < 1 || order[i] > 3) return fmi2Error;
    if (vr[i] == 0) p->v.du[order[i]] = v[i];
    else p->v.real[vr[i] + 20 * order[i]] = v[i];
  }
  return answer(p, fnSetRealInputDerivatives);
}
EXPORT fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                               const fmi2Integer order[], fmi2Real v[]) {
  for (size_t i = 0; i < n; i++) v[i] = 100. * vr[i] + order[i];
  return answer(c, fnGetRealOutputDerivatives);
}
EXPORT fmi2Status fmi2CancelStep(fmi2Component c) { return answer(c, fnCancelStep); }
EXPORT fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind k, fmi2Status *s) {
  (void)k;
  *s = ((probe *)c)->v.integer[103];
  return answer(c, fnGetStatus);
}
EXPORT fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind k, fmi2Real *v) {
  *v = ((probe *)c)->v.real[3] + k;
  return answer(c, fnGetRealStatus);
}
EXPORT fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind k, fmi2Integer *v) {
  *v = 40 + k;
  return answer(c, fnGetIntegerStatus);
}
EXPORT fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind k, fmi2Boolean *v) {
  *v = k == fmi2Terminated ? 17 : 0;
  return answer(c, fnGetBooleanStatus);
}
EXPORT fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind k, fmi2String *v) {
  *v = k == fmi2PendingStatus ? "still busy" : NULL;
  return answer(c, fnGetStringStatus);
}
#endif

EXPORT fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean noRestore) {
  probe *p = c;
  double *r = p->v.real, *d = p->v.du;
  fmi2Status s = answer(p, fnDoStep);
  p->v.integer[110]++;
  p->v.integer[111] = noRestore;
  if (p->v.integer[113]) r[20] = fegetround(); /* what this call was entered with */
  if (p->v.integer[112]) disorder();
  if (s == fmi2Discard || s == fmi2Error || s == fmi2Fatal) return s;
  r[1] += h * (r[0] + h * (d[1] / 2 + h * (d[2] / 6 + h * d[3] / 24)));
  memset(p->v.du, 0, sizeof p->v.du);
  r[2] = 2 * r[0];
  r[3] = t + h;
  return s;
}

EXPORT const char *probe_text(probe *p, int k) {
  switch (k) {
  case 0: return p->name;
  case 1: return p->guid;
  case 2: return p->uri;
  case 3: return p->categories;
  }
  static char b[256];
  snprintf(b, sizeof b, "visible=%d logging=%d tol=%d/%g start=%g stop=%d/%g", p->visible, p->logging, p->tolDefined,
           p->tolerance, p->start, p->stopDefined, p->stop);
  return b;
}
EXPORT int probe_finished_null(probe *p) { return p->cb->stepFinished == NULL; }
