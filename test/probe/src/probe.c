/* A probe: an FMU with a variable of each kind that does what its parameters say,
 * failures included. The variables are those of modelDescription.xml in probe.go.
 *
 *     x' = u (with its derivatives),  y = 2 u,  w = 10 x,  q = p + a
 *
 * The outputs echo the other inputs. In initialisation mode only outputs can be
 * got. mode is an enumeration of 1, 2, 3 and refuses every other number. x may
 * have an exact start in a description of its own. With the macro DISPLACE
 * directional derivatives leave the knowns displaced by it. */
#include "fmi2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { U, UD, X, Y, W, ECHO_UD, P, A, Q, TIME, SHARE, N_REAL };
enum { MODE, ECHO_MODE, COUNT, FAULT, STATUS, AT, POLLS, OUTCOME, ENDS, CANCEL, N_INTEGER };
enum { N_BOOLEAN = 3, N_STRING = 3, TEXT = 64, ORDERS = 4 };

/* What FAULT chooses; AT is the number of the call (after initialisation) that
 * gives STATUS. */
enum { NONE, DO_STEP, SET_REAL, GET_REAL, SET_DERIVATIVES, SET_INTEGER, TERMINATE, ENTER, EXIT, GET_STATUS, SET_STATE };

enum { INSTANTIATED, INITIALIZATION, STEPPED };

typedef struct {
	double real[N_REAL], du[ORDERS], begin;
	int integer[N_INTEGER], boolean[N_BOOLEAN];
	char string[N_STRING][TEXT];
	int phase;
} Values;

typedef struct {
	Values v;
	int calls; /* of the function that FAULT chooses */
	int polls; /* left, of a step in progress */
	double h;
	fmi2CallbackFunctions callbacks;
} Probe;

static fmi2Status answer(Probe *p, int function) {
	if (p->v.integer[FAULT] != function) return fmi2OK;
	if (p->v.phase != STEPPED && function != ENTER && function != EXIT) return fmi2OK;
	if (++p->calls != p->v.integer[AT]) return fmi2OK;
	p->callbacks.logger(p->callbacks.componentEnvironment, "probe", p->v.integer[STATUS], "fault",
	                    "as it was told");
	return p->v.integer[STATUS];
}

static void evaluate(Probe *p) {
	Values *v = &p->v;
	v->real[Y] = 2 * v->real[U];
	v->real[W] = 10 * v->real[X];
	v->real[ECHO_UD] = v->real[UD];
	v->real[Q] = v->real[P] + v->real[A];
	v->integer[ECHO_MODE] = v->integer[MODE];
	v->boolean[1] = !v->boolean[0];
	v->boolean[2] = v->integer[COUNT] % 2;
	snprintf(v->string[1], TEXT, "<%.40s>", v->string[0]);
	snprintf(v->string[2], TEXT, "step %d", v->integer[COUNT]);
}

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean on) {
	(void)name, (void)type, (void)guid, (void)resources, (void)visible, (void)on;
	Probe *p = calloc(1, sizeof *p);
	if (!p) return NULL;
	p->callbacks = *callbacks;
	p->v.real[U] = 0.5, p->v.real[UD] = 0.25, p->v.real[P] = 1.5, p->v.real[A] = 3, p->v.real[SHARE] = -1;
	p->v.integer[MODE] = 2, p->v.integer[AT] = 1, p->v.boolean[0] = 1;
	strcpy(p->v.string[0], "abc");
	return p;
}

void fmi2FreeInstance(fmi2Component c) { free(c); }

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[]) {
	(void)c, (void)on, (void)n, (void)categories;
	return fmi2OK;
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean tolDefined, fmi2Real tol, fmi2Real start,
                               fmi2Boolean stopDefined, fmi2Real stop) {
	(void)tolDefined, (void)tol, (void)stopDefined, (void)stop;
	((Probe *)c)->v.real[TIME] = start;
	return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c) {
	Probe *p = c;
	p->v.phase = INITIALIZATION;
	return answer(p, ENTER);
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c) {
	Probe *p = c;
	fmi2Status s = answer(p, EXIT);
	p->v.phase = STEPPED;
	evaluate(p);
	return s;
}

fmi2Status fmi2Terminate(fmi2Component c) { return answer(c, TERMINATE); }

fmi2Status fmi2Reset(fmi2Component c) {
	(void)c;
	return fmi2Error;
}

/* readable tells whether a value can be got now. */
static int readable(const Probe *p, int is_output) { return p->v.phase == STEPPED || is_output; }

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real v[]) {
	Probe *p = c;
	fmi2Status s = answer(p, GET_REAL);
	if (p->v.phase == INITIALIZATION) evaluate(p);
	for (size_t i = 0; i < n; i++) {
		if (vr[i] >= N_REAL || !readable(p, vr[i] == X || vr[i] == Y || vr[i] == ECHO_UD || vr[i] == Q)) return fmi2Error;
		v[i] = p->v.real[vr[i]];
	}
	return s;
}

fmi2Status fmi2GetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Integer v[]) {
	Probe *p = c;
	if (p->v.phase == INITIALIZATION) evaluate(p);
	for (size_t i = 0; i < n; i++) {
		if (vr[i] >= N_INTEGER || !readable(p, vr[i] == ECHO_MODE)) return fmi2Error;
		v[i] = p->v.integer[vr[i]];
	}
	return fmi2OK;
}

fmi2Status fmi2GetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Boolean v[]) {
	Probe *p = c;
	if (p->v.phase == INITIALIZATION) evaluate(p);
	for (size_t i = 0; i < n; i++) {
		if (vr[i] >= N_BOOLEAN || !readable(p, vr[i] == 1)) return fmi2Error;
		v[i] = p->v.boolean[vr[i]];
	}
	return fmi2OK;
}

fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2String v[]) {
	Probe *p = c;
	if (p->v.phase == INITIALIZATION) evaluate(p);
	for (size_t i = 0; i < n; i++) {
		if (vr[i] >= N_STRING || !readable(p, vr[i] == 1)) return fmi2Error;
		v[i] = p->v.string[vr[i]];
	}
	return fmi2OK;
}

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real v[]) {
	Probe *p = c;
	fmi2Status s = answer(p, SET_REAL);
	for (size_t i = 0; i < n && s <= fmi2Warning; i++) {
		int input = vr[i] == U || vr[i] == UD, parameter = vr[i] == P || vr[i] == A || vr[i] == SHARE || vr[i] == X;
		if (!(p->v.phase == INSTANTIATED ? parameter : input)) return fmi2Error;
		p->v.real[vr[i]] = v[i];
	}
	return s;
}

fmi2Status fmi2SetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer v[]) {
	Probe *p = c;
	fmi2Status s = answer(p, SET_INTEGER);
	for (size_t i = 0; i < n && s <= fmi2Warning; i++) {
		int parameter = vr[i] >= FAULT && vr[i] < N_INTEGER;
		if (!(p->v.phase == INSTANTIATED ? parameter : vr[i] == MODE)) return fmi2Error;
		if (vr[i] == MODE && (v[i] < 1 || v[i] > 3)) return fmi2Error;
		p->v.integer[vr[i]] = v[i];
	}
	return s;
}

fmi2Status fmi2SetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Boolean v[]) {
	Probe *p = c;
	for (size_t i = 0; i < n; i++) {
		if (vr[i] != 0 || p->v.phase == INSTANTIATED || (v[i] != 0 && v[i] != 1)) return fmi2Error;
		p->v.boolean[0] = v[i];
	}
	return fmi2OK;
}

fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2String v[]) {
	Probe *p = c;
	for (size_t i = 0; i < n; i++) {
		if (vr[i] != 0 || p->v.phase == INSTANTIATED) return fmi2Error;
		snprintf(p->v.string[0], TEXT, "%s", v[i]);
	}
	return fmi2OK;
}

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *s) {
	if (!*s) *s = malloc(sizeof(Values));
	if (!*s) return fmi2Error;
	memcpy(*s, &((Probe *)c)->v, sizeof(Values));
	return fmi2OK;
}

fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate s) {
	Probe *p = c;
	memcpy(&p->v, s, sizeof(Values));
	return answer(p, SET_STATE);
}

fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *s) {
	(void)c;
	free(*s);
	*s = NULL;
	return fmi2OK;
}

/* y depends on u, the echo on ud, and nothing else on an input. */
fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknown[], size_t nu,
                                        const fmi2ValueReference known[], size_t nk, const fmi2Real dk[],
                                        fmi2Real du[]) {
	(void)c;
#ifdef DISPLACE
	for (size_t k = 0; k < nk; k++)
		if (dk[k] != 0) ((Probe *)c)->v.real[known[k]] -= DISPLACE;
#endif
	for (size_t i = 0; i < nu; i++) {
		du[i] = 0;
		for (size_t k = 0; k < nk; k++) {
			if (unknown[i] == Y && known[k] == U) du[i] += 2 * dk[k];
			if (unknown[i] == ECHO_UD && known[k] == UD) du[i] += dk[k];
		}
	}
	return fmi2OK;
}

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                       const fmi2Integer order[], const fmi2Real v[]) {
	Probe *p = c;
	fmi2Status s = answer(p, SET_DERIVATIVES);
	for (size_t i = 0; i < n; i++)
		if (vr[i] == U && order[i] < ORDERS) p->v.du[order[i]] = v[i];
	return s;
}

static void finish(Probe *p) {
	Values *v = &p->v;
	double h = p->h;
	v->real[X] += h * (v->real[U] + h * (v->du[1] / 2 + h * (v->du[2] / 6 + h * v->du[3] / 24)));
	memset(v->du, 0, sizeof v->du);
	v->real[TIME] = v->begin + h;
	v->integer[COUNT]++;
	evaluate(p);
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean no_restore) {
	(void)no_restore;
	Probe *p = c;
	p->v.begin = t;
	p->h = h;
	fmi2Status s = answer(p, DO_STEP);
	if (s <= fmi2Warning) finish(p);
	if (s == fmi2Pending) p->polls = p->v.integer[POLLS];
	return s;
}

fmi2Status fmi2CancelStep(fmi2Component c) { return ((Probe *)c)->v.integer[CANCEL]; }

fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Status *value) {
	Probe *p = c;
	(void)kind;
	if (p->v.integer[POLLS] < 0) return fmi2Discard; /* it does not tell */
	*value = fmi2Pending;
	if (p->polls-- > 0) return fmi2OK;
	*value = p->v.integer[OUTCOME];
	if (*value <= fmi2Warning) finish(p);
	return fmi2OK;
}

fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value) {
	Probe *p = c;
	if (kind != fmi2LastSuccessfulTime || p->v.real[SHARE] < 0) return fmi2Discard;
	*value = p->v.begin + p->v.real[SHARE] * p->h;
	return fmi2OK;
}

fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value) {
	if (kind != fmi2Terminated) return fmi2Discard;
	*value = ((Probe *)c)->v.integer[ENDS];
	return fmi2OK;
}

fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Integer *value) {
	(void)c, (void)kind, (void)value;
	return fmi2Discard;
}

fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind kind, fmi2String *value) {
	(void)c, (void)kind, (void)value;
	return fmi2Discard;
}

fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate s, size_t *n) {
	(void)c, (void)s, (void)n;
	return fmi2Error;
}
fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate s, fmi2Byte b[], size_t n) {
	(void)c, (void)s, (void)b, (void)n;
	return fmi2Error;
}
fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte b[], size_t n, fmi2FMUstate *s) {
	(void)c, (void)b, (void)n, (void)s;
	return fmi2Error;
}
fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                        const fmi2Integer order[], fmi2Real v[]) {
	(void)c, (void)vr, (void)n, (void)order, (void)v;
	return fmi2Error;
}
