/* The functions of FMI 2.0 for Co-Simulation. */
#include "fmu.h"
#ifdef FMU_WRAPPED
#include "wrap.h" /* another file exports functions in front of these */
#endif

#include <stdlib.h>

void *allocate(const Callbacks *f, size_t size) { return f->allocateMemory ? f->allocateMemory(1, size) : calloc(1, size); }

void release(const Callbacks *f, void *p) {
	if (!p) return;
	if (f->freeMemory) f->freeMemory(p);
	else free(p);
}

void deliver(const Callbacks *f, const char *name, Status status, const char *category, const char *text) {
	char format[2 * MAX_MESSAGE], *end = format;
	do {
		if (*text == '%') *end++ = '%';
		*end++ = *text;
	} while (*text++);
	if (f->logger) f->logger(f->componentEnvironment, name, (fmi2Status)status, category, format);
}

/* CALL calls a function of fmu.h for the instance c. */
#define CALL(name, call)                                                                          \
	Instance *m = c;                                                                              \
	if (!m) return fmi2Error;                                                                     \
	m->function = name;                                                                           \
	return (fmi2Status)(call)

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[]) {
	CALL("fmi2SetDebugLogging", fmu_logging(m, on, n, categories));
}

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean logging) {
	(void)resources;
	(void)visible;
	if (!functions) return NULL;
	return fmu_new(functions, "fmi2Instantiate", name, guid, type == fmi2CoSimulation ? NULL : "only co-simulation is offered",
	               logging);
}

void fmi2FreeInstance(fmi2Component c) {
	Instance *m = c;
	if (!m) return;
	m->function = "fmi2FreeInstance";
	fmu_free(m);
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start,
                               fmi2Boolean has_stop, fmi2Real stop) {
	CALL("fmi2SetupExperiment", fmu_experiment(m, has_tolerance, tolerance, start, has_stop, stop));
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c) { CALL("fmi2EnterInitializationMode", fmu_initialize(m)); }
fmi2Status fmi2ExitInitializationMode(fmi2Component c) { CALL("fmi2ExitInitializationMode", fmu_start(m)); }
fmi2Status fmi2Terminate(fmi2Component c) { CALL("fmi2Terminate", fmu_terminate(m)); }
fmi2Status fmi2Reset(fmi2Component c) { CALL("fmi2Reset", fmu_reset(m)); }

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real value[]) {
	CALL("fmi2GetReal", fmu_get_reals(m, vr, n, value));
}

fmi2Status fmi2GetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Integer value[]) {
	CALL("fmi2GetInteger", fmu_get_integers(m, vr, n, value, 0));
}

fmi2Status fmi2GetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Boolean value[]) {
	CALL("fmi2GetBoolean", n ? refuse(m, StatusError, "there are no boolean variables") : fmu_get_texts(m, vr, 0, NULL));
}

fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2String value[]) {
	CALL("fmi2GetString", fmu_get_texts(m, vr, n, value));
}

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real value[]) {
	CALL("fmi2SetReal", fmu_set_reals(m, vr, n, value));
}

fmi2Status fmi2SetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer value[]) {
	CALL("fmi2SetInteger", fmu_set_integers(m, vr, n, value, 0));
}

fmi2Status fmi2SetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Boolean value[]) {
	CALL("fmi2SetBoolean", n ? refuse(m, StatusError, "there are no boolean variables") : fmu_set_texts(m, vr, 0, NULL));
}

fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2String value[]) {
	CALL("fmi2SetString", fmu_set_texts(m, vr, n, value));
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean no_restore) {
	CALL("fmi2DoStep", fmu_step(m, t, h, no_restore));
}

fmi2Status fmi2CancelStep(fmi2Component c) {
	CALL("fmi2CancelStep", refuse(m, StatusError, "not allowed: steps are synchronous"));
}

/* ASK answers a question of fmi2GetStatus and its like. */
#define ASK(name, kind_asked, v)                                                                  \
	CALL(name, fmu_ask(m) ? StatusError : kind != kind_asked ? StatusDiscard :                    \
	     !value ? refuse(m, StatusError, "nowhere to put the value") : (*value = (v), StatusOK))

fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Status *value) {
	ASK("fmi2GetStatus", fmi2DoStepStatus, m->refused ? fmi2Discard : fmi2OK); /* steps are synchronous: the last one is done */
}

fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value) {
	ASK("fmi2GetRealStatus", fmi2LastSuccessfulTime, m->s.time);
}

fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Integer *value) {
	CALL("fmi2GetIntegerStatus", fmu_ask(m) ? StatusError : StatusDiscard);
}

fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value) {
	ASK("fmi2GetBooleanStatus", fmi2Terminated, m->ended);
}

fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind kind, fmi2String *value) {
	CALL("fmi2GetStringStatus", fmu_ask(m) ? StatusError : StatusDiscard);
}

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer order[],
                                       const fmi2Real value[]) {
	CALL("fmi2SetRealInputDerivatives", OPTIONAL(fmu_set_input_derivatives(m, vr, n, order, value)));
}

fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer order[],
                                        fmi2Real value[]) {
	CALL("fmi2GetRealOutputDerivatives", OPTIONAL(fmu_get_output_derivatives(m, vr, n, order, value)));
}

fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknown[], size_t nu,
                                        const fmi2ValueReference known[], size_t nk, const fmi2Real seed[], fmi2Real d[]) {
	CALL("fmi2GetDirectionalDerivative", OPTIONAL(fmu_directional(m, unknown, nu, known, nk, seed, d)));
}

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state) { CALL("fmi2GetFMUstate", OPTIONAL(fmu_get_state(m, state))); }
fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state) { CALL("fmi2SetFMUstate", OPTIONAL(fmu_set_state(m, state))); }
fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state) { CALL("fmi2FreeFMUstate", OPTIONAL(fmu_free_state(m, state))); }

fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size) {
	CALL("fmi2SerializedFMUstateSize", OPTIONAL(fmu_state_size(m, state, size)));
}

fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
	CALL("fmi2SerializeFMUstate", OPTIONAL(fmu_serialize(m, state, bytes, size)));
}

fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state) {
	CALL("fmi2DeSerializeFMUstate", OPTIONAL(fmu_deserialize(m, bytes, size, state)));
}
