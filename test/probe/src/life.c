/* An FMU that comes as sources and departs from the standard as the macros say.
 *
 *     x' = k (u - x) by one Euler step,  z' = u,  y = x + z
 *
 * FORGET   a restored state lacks z
 * STUCK    restoring does nothing
 * COMMIT   a step that may be undone begins where the last other one began
 * RESTART  y is off by this part for four steps after a restore, as of a solver
 *          that starts again
 * OPENING  the first step of all adds this to y, unless a state was restored before
 * JITTER   y is off by this part after every other restore
 * REFUSE   no state is given
 * COARSE   longer steps than this are discarded
 * CLIP     k, mode, on and text are not kept
 * LOCKED   parameters cannot be set
 * MUTE     getting k, mode, on or text gives this status
 * RESET    fmi2Reset works
 * DIVIDE   u must not be 0 when initialisation mode is entered, and is 0 until it is set
 * BAD_END  fmi2Terminate fails
 * STOP     a stop time must be told
 * PRINT    it prints to standard output
 * FOLDER   the working directory at the time of loading is logged
 */
#include "fmi2Functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef FOLDER
#include <unistd.h>
static char folder[4096];
__attribute__((constructor)) static void here(void) {
	if (!getcwd(folder, sizeof folder)) folder[0] = 0;
}
#endif

static int instances; /* of this library in this process */

typedef struct {
	double u, x, z, k;
	double committed[3]; /* x, z, and whether they are there */
	int mode, n, on, restored, since; /* restores, steps since the last */
	char text[64];
	fmi2CallbackFunctions callbacks;
} Life;

static void start(Life *m) {
	m->k = 2, m->mode = 3, m->n = 7, m->on = 1;
	strcpy(m->text, "abcdef");
#ifndef DIVIDE
	m->u = 1;
#endif
}

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean on) {
	(void)type, (void)guid, (void)resources, (void)visible, (void)on, (void)name;
	Life *m = calloc(1, sizeof *m);
	if (!m) return NULL;
	m->callbacks = *callbacks;
	start(m);
	instances++;
#ifdef PRINT
	puts("printed by the FMU");
	fflush(stdout);
#endif
#ifdef FOLDER
	callbacks->logger(callbacks->componentEnvironment, name, fmi2Warning, NULL, "loaded in %s", folder);
#endif
	return m;
}

void fmi2FreeInstance(fmi2Component c) { free(c); }

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[]) {
	(void)c, (void)on, (void)n, (void)categories;
	return fmi2OK;
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean toleranceDefined, fmi2Real tolerance, fmi2Real start,
                               fmi2Boolean stopDefined, fmi2Real stop) {
	(void)c, (void)toleranceDefined, (void)tolerance, (void)start, (void)stopDefined, (void)stop;
#ifdef STOP
	if (!stopDefined) return fmi2Error;
#endif
	return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c) {
	Life *m = c;
#ifdef DIVIDE
	if (m->u == 0) return fmi2Error;
#endif
	(void)m;
	return fmi2OK;
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c) {
	Life *m = c;
#ifdef CLIP
	if (m->k > 5) m->k = 5;
	m->mode = 1;
	m->on = 0;
	m->text[3] = 0;
#endif
	(void)m;
	return fmi2OK;
}

fmi2Status fmi2Terminate(fmi2Component c) {
	(void)c;
#ifdef BAD_END
	return fmi2Error;
#endif
	return fmi2OK;
}

fmi2Status fmi2Reset(fmi2Component c) {
#ifdef RESET
	start(c);
	return fmi2OK;
#endif
	return c ? fmi2Error : fmi2Fatal;
}

static double output(const Life *m) {
	double y = m->x + m->z;
#ifdef RESTART
	if (m->restored && m->since < 5) y *= 1 + RESTART;
#endif
#ifdef JITTER
	if (m->restored % 2) y *= 1 + JITTER;
#endif
	return y;
}

static fmi2Status got(const Life *m, int parameter) {
#ifdef MUTE
	if (parameter) {
		m->callbacks.logger(m->callbacks.componentEnvironment, "life", MUTE, NULL, "parameters are not shown");
		return MUTE;
	}
#endif
	return (void)m, (void)parameter, fmi2OK;
}

static fmi2Status parameter_set(void) {
#ifdef LOCKED
	return fmi2Error;
#endif
	return fmi2OK;
}

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real v[]) {
	const Life *m = c;
	int k = 0;
	for (size_t i = 0; i < n; i++) v[i] = vr[i] == 0 ? m->u : vr[i] == 1 ? output(m) : (k = 1, m->k);
	return got(m, k);
}

fmi2Status fmi2GetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Integer v[]) {
	const Life *m = c;
	int mode = 0;
	for (size_t i = 0; i < n; i++) v[i] = vr[i] == 0 ? (mode = 1, m->mode) : vr[i] == 1 ? m->n : instances;
	return got(m, mode);
}

fmi2Status fmi2GetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Boolean v[]) {
	(void)vr;
	for (size_t i = 0; i < n; i++) v[i] = ((Life *)c)->on;
	return got(c, 1);
}

fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2String v[]) {
	(void)vr;
	for (size_t i = 0; i < n; i++) v[i] = ((Life *)c)->text;
	return got(c, 1);
}

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real v[]) {
	Life *m = c;
	int k = 0;
	for (size_t i = 0; i < n; i++) *(vr[i] == 0 ? &m->u : (k = 1, &m->k)) = v[i];
	return k ? parameter_set() : fmi2OK;
}

fmi2Status fmi2SetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer v[]) {
	Life *m = c;
	for (size_t i = 0; i < n; i++) *(vr[i] == 0 ? &m->mode : &m->n) = v[i];
	return parameter_set();
}

fmi2Status fmi2SetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Boolean v[]) {
	(void)vr;
	for (size_t i = 0; i < n; i++) ((Life *)c)->on = v[i];
	return parameter_set();
}

fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2String v[]) {
	(void)vr;
	for (size_t i = 0; i < n; i++) strncpy(((Life *)c)->text, v[i], sizeof((Life *)c)->text - 1);
	return parameter_set();
}

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state) {
#ifdef REFUSE
	(void)c, (void)state;
	return fmi2Error;
#else
	if (!*state) *state = malloc(sizeof(Life));
	memcpy(*state, c, sizeof(Life));
	return fmi2OK;
#endif
}

fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state) {
	Life *m = c, keep = *m;
#ifndef STUCK
	memcpy(m, state, sizeof *m);
#endif
#ifdef FORGET
	m->z = keep.z;
#endif
	m->restored = keep.restored + 1;
	m->since = 0;
	return fmi2OK;
}

fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state) {
	(void)c;
	free(*state);
	*state = NULL;
	return fmi2OK;
}

fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size) {
	(void)c, (void)state;
	*size = sizeof(Life);
	return fmi2OK;
}

fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
	(void)c;
	memcpy(bytes, state, size);
	return fmi2OK;
}

fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state) {
	if (!*state) *state = malloc(sizeof(Life));
	memcpy(*state, bytes, size);
	((Life *)*state)->callbacks = ((Life *)c)->callbacks;
	return fmi2OK;
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean noRestore) {
	Life *m = c;
	(void)t, (void)noRestore;
#ifdef COMMIT
	if (noRestore || !m->committed[2]) m->committed[0] = m->x, m->committed[1] = m->z, m->committed[2] = 1;
	else m->x = m->committed[0], m->z = m->committed[1];
#endif
#ifdef COARSE
	if (h > COARSE) return fmi2Discard;
#endif
	m->x += h * m->k * (m->u - m->x);
	m->z += h * m->u;
#ifdef OPENING
	if (!m->restored && !m->since) m->z += OPENING;
#endif
	m->since++;
	return fmi2OK;
}

fmi2Status fmi2CancelStep(fmi2Component c) { return c ? fmi2Error : fmi2Fatal; }

fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind k, fmi2Status *s) {
	(void)c, (void)k, (void)s;
	return fmi2Discard;
}

fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind k, fmi2Real *v) {
	(void)c, (void)k, (void)v;
	return fmi2Discard;
}

fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind k, fmi2Boolean *v) {
	(void)c, (void)k, (void)v;
	return fmi2Discard;
}
