/* Chassis and wheel of a quarter truck, with the variables that the example of OSP
 * has (macro WHEEL: the wheel). Chassis:
 *
 *     z' = v,  mass v' = force
 *
 * Wheel with suspension, driven by the velocity of the chassis w = in_vel:
 *
 *     z' = v,  c' = w,  mass v' = 150000 (0.1 - z) - F,  F = 15000 (z - c) + 1000 (v - w)
 *
 * where F = out_spring_damper_f pushes the chassis. Forward Euler in steps of at
 * most timeStep; solverType must be Euler. */
#include "fmi2.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MASS, TIME_STEP, IN, OUT, VELOCITY, POSITION, N_REAL };

typedef struct {
	double real[N_REAL], c; /* c: displacement of the chassis, seen from the wheel */
	char solver[32];
} Truck;

static double force(const Truck *t) {
	return 15000 * (t->real[POSITION] - t->c) + 1000 * (t->real[VELOCITY] - t->real[IN]);
}

static void evaluate(Truck *t) {
#ifdef WHEEL
	t->real[OUT] = force(t);
#else
	t->real[OUT] = t->real[VELOCITY];
#endif
}

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean on) {
	(void)name, (void)type, (void)guid, (void)resources, (void)callbacks, (void)visible, (void)on;
	Truck *t = calloc(1, sizeof *t);
	if (t) t->real[MASS] = 1, t->real[TIME_STEP] = 1e-3;
	return t;
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

fmi2Status fmi2EnterInitializationMode(fmi2Component c) {
	Truck *t = c;
	return strcmp(t->solver, "Euler") == 0 && t->real[MASS] > 0 && t->real[TIME_STEP] > 0 ? fmi2OK : fmi2Error;
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c) {
	evaluate(c);
	return fmi2OK;
}

fmi2Status fmi2Terminate(fmi2Component c) { return (void)c, fmi2OK; }
fmi2Status fmi2Reset(fmi2Component c) { return (void)c, fmi2Error; }

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real v[]) {
	Truck *t = c;
	evaluate(t);
	for (size_t i = 0; i < n; i++) {
		if (vr[i] >= N_REAL) return fmi2Error;
		v[i] = t->real[vr[i]];
	}
	return fmi2OK;
}

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real v[]) {
	Truck *t = c;
	for (size_t i = 0; i < n; i++) {
		if (vr[i] > IN) return fmi2Error;
		t->real[vr[i]] = v[i];
	}
	return fmi2OK;
}

fmi2Status fmi2GetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Integer v[]) {
	return (void)c, (void)vr, (void)v, n ? fmi2Error : fmi2OK;
}
fmi2Status fmi2SetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer v[]) {
	return (void)c, (void)vr, (void)v, n ? fmi2Error : fmi2OK;
}
fmi2Status fmi2GetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Boolean v[]) {
	return (void)c, (void)vr, (void)v, n ? fmi2Error : fmi2OK;
}
fmi2Status fmi2SetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Boolean v[]) {
	return (void)c, (void)vr, (void)v, n ? fmi2Error : fmi2OK;
}

fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2String v[]) {
	for (size_t i = 0; i < n; i++) {
		if (vr[i]) return fmi2Error;
		v[i] = ((Truck *)c)->solver;
	}
	return fmi2OK;
}

fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2String v[]) {
	Truck *t = c;
	for (size_t i = 0; i < n; i++) {
		if (vr[i] || strlen(v[i]) >= sizeof t->solver) return fmi2Error;
		strcpy(t->solver, v[i]);
	}
	return fmi2OK;
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real at, fmi2Real H, fmi2Boolean noSet) {
	Truck *t = c;
	(void)at, (void)noSet;
	int n = (int)ceil(H / t->real[TIME_STEP] - 1e-9);
	double h = H / (n < 1 ? 1 : n);
	for (int i = 0; i < n || i == 0; i++) {
#ifdef WHEEL
		double a = (150000 * (0.1 - t->real[POSITION]) - force(t)) / t->real[MASS];
		t->c += h * t->real[IN];
#else
		double a = t->real[IN] / t->real[MASS];
#endif
		t->real[POSITION] += h * t->real[VELOCITY];
		t->real[VELOCITY] += h * a;
	}
	return fmi2OK;
}
