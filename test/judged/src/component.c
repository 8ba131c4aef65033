/* A co-simulation FMU of a few lines, which are appended to this file with the
 * macros INPUTS, OUTPUTS, STATES, STEP and the functions declared below. Inputs are held
 * during a step, which the method of Runge and Kutta of order 4 divides into equal parts of
 * at most STEP seconds. Value references are inputs first, then outputs. */
#include "fmi2.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	double time_, input_[INPUTS + 1], output_[OUTPUTS], state_[STATES], rate_[STATES];
} Component;

static void start(Component *);
static void rates(Component *);
static void outputs(Component *);
static void update(Component *); /* after each part of a step */

static void part(Component *c, double h) {
	static const double node[] = {0, 0.5, 0.5, 1}, weight[] = {1, 2, 2, 1};
	double t = c->time_, x[STATES], sum[STATES] = {0};
	memcpy(x, c->state_, sizeof x);
	for (int k = 0; k < 4; k++) {
		c->time_ = t + node[k] * h;
		for (int i = 0; i < STATES; i++) c->state_[i] = x[i] + node[k] * h * c->rate_[i];
		memset(c->rate_, 0, sizeof c->rate_);
		rates(c);
		for (int i = 0; i < STATES; i++) sum[i] += weight[k] * c->rate_[i] / 6;
	}
	for (int i = 0; i < STATES; i++) c->state_[i] = x[i] + h * sum[i];
	update(c);
}

FMI2_EXPORT const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
FMI2_EXPORT const char *fmi2GetVersion(void) { return fmi2Version; }

FMI2_EXPORT fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                                          const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean on) {
	Component *c = calloc(1, sizeof *c);
	(void)name, (void)type, (void)guid, (void)resources, (void)callbacks, (void)visible, (void)on;
	if (c) start(c);
	return c;
}

FMI2_EXPORT void fmi2FreeInstance(fmi2Component c) { free(c); }

FMI2_EXPORT fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[]) {
	(void)c, (void)on, (void)n, (void)categories;
	return fmi2OK;
}

FMI2_EXPORT fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean given, fmi2Real tolerance, fmi2Real from,
                                           fmi2Boolean ends, fmi2Real stop) {
	(void)given, (void)tolerance, (void)ends, (void)stop;
	((Component *)c)->time_ = from;
	return fmi2OK;
}

FMI2_EXPORT fmi2Status fmi2EnterInitializationMode(fmi2Component c) { return c ? fmi2OK : fmi2Error; }
FMI2_EXPORT fmi2Status fmi2ExitInitializationMode(fmi2Component c) { return c ? fmi2OK : fmi2Error; }
FMI2_EXPORT fmi2Status fmi2Terminate(fmi2Component c) { return c ? fmi2OK : fmi2Error; }

FMI2_EXPORT fmi2Status fmi2Reset(fmi2Component c) {
	memset(c, 0, sizeof(Component));
	start(c);
	return fmi2OK;
}

FMI2_EXPORT fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real v[]) {
	for (size_t i = 0; i < n; i++) {
		if (vr[i] >= INPUTS) return fmi2Error;
		((Component *)c)->input_[vr[i]] = v[i];
	}
	return fmi2OK;
}

FMI2_EXPORT fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real v[]) {
	Component *m = c;
	outputs(m);
	for (size_t i = 0; i < n; i++) {
		if (vr[i] >= INPUTS + OUTPUTS) return fmi2Error;
		v[i] = vr[i] < INPUTS ? m->input_[vr[i]] : m->output_[vr[i] - INPUTS];
	}
	return fmi2OK;
}

FMI2_EXPORT fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean kept) {
	Component *m = c;
	int parts = (int)ceil(h / STEP - 1e-6);
	if (parts < 1) parts = 1;
	for (int i = 0; i < parts; i++) {
		m->time_ = t + h * i / parts;
		part(m, h / parts);
	}
	(void)kept;
	m->time_ = t + h;
	return fmi2OK;
}

FMI2_EXPORT fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state) {
	if (!*state && !(*state = malloc(sizeof(Component)))) return fmi2Error;
	memcpy(*state, c, sizeof(Component));
	return fmi2OK;
}

FMI2_EXPORT fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state) {
	memcpy(c, state, sizeof(Component));
	return fmi2OK;
}

FMI2_EXPORT fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state) {
	(void)c;
	free(*state);
	*state = NULL;
	return fmi2OK;
}

FMI2_EXPORT fmi2Status fmi2CancelStep(fmi2Component c) { return c ? fmi2Error : fmi2Fatal; }
