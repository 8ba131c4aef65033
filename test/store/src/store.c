/* An FMU whose variables are what the description says: Reals, of which those that
 * are set keep their values and the others follow from them by the macro EVALUATE, a
 * statement over the array r by value reference. Parameters can be set until the
 * initialisation is over, as FMI wants it; a value that is set to one later is an
 * error. PARAMETERS has a 1 for the value reference of each of them, and STARTS the
 * value that each variable has at first. */
#include "fmi2.h"

#include <stdlib.h>
#include <string.h>

static const char parameter[] = {PARAMETERS};
static const double starts[] = {STARTS};
enum { N = sizeof parameter };

typedef struct {
	double r[N];
	int running;
} Store;

static void evaluate(double r[]) { EVALUATE; }

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean on) {
	(void)name, (void)type, (void)guid, (void)resources, (void)callbacks, (void)visible, (void)on;
	Store *s = calloc(1, sizeof *s);
	if (s) memcpy(s->r, starts, sizeof s->r);
	return s;
}

void fmi2FreeInstance(fmi2Component c) { free(c); }

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[]) {
	(void)c, (void)on, (void)n, (void)categories;
	return fmi2OK;
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean tolDefined, fmi2Real tol, fmi2Real start,
                               fmi2Boolean stopDefined, fmi2Real stop) {
	(void)c, (void)tolDefined, (void)tol, (void)start, (void)stopDefined, (void)stop;
	return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c) { return (void)c, fmi2OK; }

fmi2Status fmi2ExitInitializationMode(fmi2Component c) {
	((Store *)c)->running = 1;
	return fmi2OK;
}

fmi2Status fmi2Terminate(fmi2Component c) { return (void)c, fmi2OK; }
fmi2Status fmi2Reset(fmi2Component c) { return (void)c, fmi2Error; }

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real v[]) {
	Store *s = c;
	evaluate(s->r);
	for (size_t i = 0; i < n; i++) {
		if (vr[i] >= N) return fmi2Error;
		v[i] = s->r[vr[i]];
	}
	return fmi2OK;
}

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real v[]) {
	Store *s = c;
	for (size_t i = 0; i < n; i++) {
		if (vr[i] >= N || (s->running && parameter[vr[i]])) return fmi2Error;
		s->r[vr[i]] = v[i];
	}
	return fmi2OK;
}

#define NONE(name, type, constness) \
	fmi2Status name(fmi2Component c, const fmi2ValueReference vr[], size_t n, constness type v[]) { \
		return (void)c, (void)vr, (void)v, n ? fmi2Error : fmi2OK; \
	}
NONE(fmi2GetInteger, fmi2Integer, )
NONE(fmi2SetInteger, fmi2Integer, const)
NONE(fmi2GetBoolean, fmi2Boolean, )
NONE(fmi2SetBoolean, fmi2Boolean, const)
NONE(fmi2GetString, fmi2String, )
NONE(fmi2SetString, fmi2String, const)

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean noSet) {
	(void)c, (void)t, (void)h, (void)noSet;
	return fmi2OK;
}
