/* The functions of FMI 3.0 for Co-Simulation. All others are there and refuse. */
#include "fmu.h"

#include <stdlib.h>

void *allocate(const Callbacks *f, size_t size) {
	(void)f;
	return calloc(1, size);
}

void release(const Callbacks *f, void *p) {
	(void)f;
	free(p);
}

void deliver(const Callbacks *f, const char *name, Status status, const char *category, const char *text) {
	(void)name;
	if (f->logger) f->logger(f->componentEnvironment, (fmi3Status)status, category, text);
}

/* CALL calls a function of fmu.h for the instance c, SIZED if there is one value for each reference. */
#define CALL(name, call)                                                                          \
	Instance *m = c;                                                                              \
	if (!m) return fmi3Error;                                                                     \
	m->function = name;                                                                           \
	return (fmi3Status)(call)
#define SIZED(size, n, call)                                                                      \
	(size) == (n) ? (call) : refuse(m, StatusError, "%u values for %u variables", (unsigned)(size), (unsigned)(n))

const char *fmi3GetVersion(void) { return fmi3Version; }

fmi3Status fmi3SetDebugLogging(fmi3Instance c, fmi3Boolean on, size_t n, const fmi3String categories[]) {
	CALL("fmi3SetDebugLogging", fmu_logging(m, on, n, categories));
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                         fmi3Boolean logging, fmi3Boolean event_mode, fmi3Boolean early_return,
                                         const fmi3ValueReference intermediate[], size_t n, fmi3InstanceEnvironment environment,
                                         fmi3LogMessageCallback logger, fmi3IntermediateUpdateCallback update) {
	Callbacks f = {logger, environment};
	return fmu_new(&f, "fmi3InstantiateCoSimulation", name, token, event_mode ? "there is no event mode" : NULL, logging);
}

fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                          fmi3Boolean logging, fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger) {
	Callbacks f = {logger, environment};
	return fmu_new(&f, "fmi3InstantiateModelExchange", name, token, "only co-simulation is offered", logging);
}

fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                               fmi3Boolean logging, fmi3InstanceEnvironment environment,
                                               fmi3LogMessageCallback logger, fmi3ClockUpdateCallback update,
                                               fmi3LockPreemptionCallback lock, fmi3UnlockPreemptionCallback unlock) {
	Callbacks f = {logger, environment};
	return fmu_new(&f, "fmi3InstantiateScheduledExecution", name, token, "only co-simulation is offered", logging);
}

void fmi3FreeInstance(fmi3Instance c) {
	Instance *m = c;
	if (!m) return;
	m->function = "fmi3FreeInstance";
	fmu_free(m);
}

fmi3Status fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean has_tolerance, fmi3Float64 tolerance, fmi3Float64 start,
                                       fmi3Boolean has_stop, fmi3Float64 stop) {
	Status s;
	CALL("fmi3EnterInitializationMode",
	     (s = fmu_experiment(m, has_tolerance, tolerance, start, has_stop, stop)) != StatusOK ? s : fmu_initialize(m));
}

fmi3Status fmi3ExitInitializationMode(fmi3Instance c) { CALL("fmi3ExitInitializationMode", fmu_start(m)); }
fmi3Status fmi3Terminate(fmi3Instance c) { CALL("fmi3Terminate", fmu_terminate(m)); }
fmi3Status fmi3Reset(fmi3Instance c) { CALL("fmi3Reset", fmu_reset(m)); }

#define VARIABLES(T, get, set)                                                                    \
	fmi3Status fmi3Get##T(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3##T value[], size_t size) { \
		CALL("fmi3Get" #T, SIZED(size, n, get));                                                  \
	}                                                                                             \
	fmi3Status fmi3Set##T(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3##T value[], size_t size) { \
		CALL("fmi3Set" #T, SIZED(size, n, set));                                                  \
	}
#define NONE (n ? refuse(m, StatusError, "there are no variables of this type") : StatusOK)
VARIABLES(Float64, fmu_get_reals(m, vr, n, value), fmu_set_reals(m, vr, n, value))
VARIABLES(Int32, fmu_get_integers(m, vr, n, value, 0), fmu_set_integers(m, vr, n, value, 0))
VARIABLES(Int64, fmu_get_integers(m, vr, n, value, 1), fmu_set_integers(m, vr, n, value, 1)) /* enumerations */
VARIABLES(String, fmu_get_texts(m, vr, n, value), fmu_set_texts(m, vr, n, value))
VARIABLES(Float32, NONE, NONE)
VARIABLES(Int8, NONE, NONE)
VARIABLES(UInt8, NONE, NONE)
VARIABLES(Int16, NONE, NONE)
VARIABLES(UInt16, NONE, NONE)
VARIABLES(UInt32, NONE, NONE)
VARIABLES(UInt64, NONE, NONE)
VARIABLES(Boolean, NONE, NONE)

fmi3Status fmi3DoStep(fmi3Instance c, fmi3Float64 t, fmi3Float64 h, fmi3Boolean no_restore, fmi3Boolean *event,
                      fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *reached) {
	Status s;
	CALL("fmi3DoStep", !event || !terminate || !early || !reached ? refuse(m, StatusError, "nowhere to put a result") :
	     (s = fmu_step(m, t, h, no_restore), *event = *early = false, *terminate = m->ended != 0, *reached = m->s.time, s));
}

fmi3Status fmi3GetOutputDerivatives(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3Int32 order[],
                                    fmi3Float64 value[], size_t size) {
	CALL("fmi3GetOutputDerivatives", OPTIONAL(SIZED(size, n, fmu_get_output_derivatives(m, vr, n, order, value))));
}

fmi3Status fmi3GetDirectionalDerivative(fmi3Instance c, const fmi3ValueReference unknown[], size_t nu,
                                        const fmi3ValueReference known[], size_t nk, const fmi3Float64 seed[], size_t seeds,
                                        fmi3Float64 d[], size_t size) {
	CALL("fmi3GetDirectionalDerivative",
	     OPTIONAL(SIZED(seeds, nk, SIZED(size, nu, fmu_directional(m, unknown, nu, known, nk, seed, d)))));
}

fmi3Status fmi3GetFMUState(fmi3Instance c, fmi3FMUState *state) { CALL("fmi3GetFMUState", OPTIONAL(fmu_get_state(m, state))); }
fmi3Status fmi3SetFMUState(fmi3Instance c, fmi3FMUState state) { CALL("fmi3SetFMUState", OPTIONAL(fmu_set_state(m, state))); }
fmi3Status fmi3FreeFMUState(fmi3Instance c, fmi3FMUState *state) { CALL("fmi3FreeFMUState", OPTIONAL(fmu_free_state(m, state))); }

fmi3Status fmi3SerializedFMUStateSize(fmi3Instance c, fmi3FMUState state, size_t *size) {
	CALL("fmi3SerializedFMUStateSize", OPTIONAL(fmu_state_size(m, state, size)));
}

fmi3Status fmi3SerializeFMUState(fmi3Instance c, fmi3FMUState state, fmi3Byte bytes[], size_t size) {
	CALL("fmi3SerializeFMUState", OPTIONAL(fmu_serialize(m, state, (char *)bytes, size)));
}

fmi3Status fmi3DeserializeFMUState(fmi3Instance c, const fmi3Byte bytes[], size_t size, fmi3FMUState *state) {
	CALL("fmi3DeserializeFMUState", OPTIONAL(fmu_deserialize(m, (const char *)bytes, size, state)));
}

#define ABSENT(name, arguments)                                                                   \
	fmi3Status name arguments { CALL(#name, refuse(m, StatusError, "not offered by this FMU")); }
#define REFERENCES fmi3Instance c, const fmi3ValueReference vr[], size_t n
ABSENT(fmi3GetBinary, (REFERENCES, size_t sizes[], fmi3Binary value[], size_t size))
ABSENT(fmi3SetBinary, (REFERENCES, const size_t sizes[], const fmi3Binary value[], size_t size))
ABSENT(fmi3GetClock, (REFERENCES, fmi3Clock value[]))
ABSENT(fmi3SetClock, (REFERENCES, const fmi3Clock value[]))
ABSENT(fmi3GetNumberOfVariableDependencies, (fmi3Instance c, fmi3ValueReference vr, size_t *n))
ABSENT(fmi3GetVariableDependencies, (fmi3Instance c, fmi3ValueReference vr, size_t elements[], fmi3ValueReference knowns[],
                                     size_t elements_of_knowns[], fmi3DependencyKind kinds[], size_t n))
ABSENT(fmi3GetAdjointDerivative, (REFERENCES, const fmi3ValueReference known[], size_t nk, const fmi3Float64 seed[], size_t seeds,
                                  fmi3Float64 d[], size_t size))
ABSENT(fmi3GetIntervalDecimal, (REFERENCES, fmi3Float64 interval[], fmi3IntervalQualifier qualifier[]))
ABSENT(fmi3GetIntervalFraction, (REFERENCES, fmi3UInt64 counter[], fmi3UInt64 resolution[], fmi3IntervalQualifier qualifier[]))
ABSENT(fmi3GetShiftDecimal, (REFERENCES, fmi3Float64 shift[]))
ABSENT(fmi3GetShiftFraction, (REFERENCES, fmi3UInt64 counter[], fmi3UInt64 resolution[]))
ABSENT(fmi3SetIntervalDecimal, (REFERENCES, const fmi3Float64 interval[]))
ABSENT(fmi3SetIntervalFraction, (REFERENCES, const fmi3UInt64 counter[], const fmi3UInt64 resolution[]))
ABSENT(fmi3SetShiftDecimal, (REFERENCES, const fmi3Float64 shift[]))
ABSENT(fmi3SetShiftFraction, (REFERENCES, const fmi3UInt64 counter[], const fmi3UInt64 resolution[]))
ABSENT(fmi3EvaluateDiscreteStates, (fmi3Instance c))
ABSENT(fmi3UpdateDiscreteStates, (fmi3Instance c, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean *nominals,
                                  fmi3Boolean *values, fmi3Boolean *has_next, fmi3Float64 *next))
ABSENT(fmi3EnterEventMode, (fmi3Instance c))
ABSENT(fmi3EnterStepMode, (fmi3Instance c))
ABSENT(fmi3EnterConfigurationMode, (fmi3Instance c))
ABSENT(fmi3ExitConfigurationMode, (fmi3Instance c))
ABSENT(fmi3EnterContinuousTimeMode, (fmi3Instance c))
ABSENT(fmi3CompletedIntegratorStep, (fmi3Instance c, fmi3Boolean no_restore, fmi3Boolean *event, fmi3Boolean *terminate))
ABSENT(fmi3SetTime, (fmi3Instance c, fmi3Float64 t))
ABSENT(fmi3SetContinuousStates, (fmi3Instance c, const fmi3Float64 x[], size_t n))
ABSENT(fmi3GetContinuousStateDerivatives, (fmi3Instance c, fmi3Float64 dx[], size_t n))
ABSENT(fmi3GetEventIndicators, (fmi3Instance c, fmi3Float64 z[], size_t n))
ABSENT(fmi3GetContinuousStates, (fmi3Instance c, fmi3Float64 x[], size_t n))
ABSENT(fmi3GetNominalsOfContinuousStates, (fmi3Instance c, fmi3Float64 x[], size_t n))
ABSENT(fmi3GetNumberOfEventIndicators, (fmi3Instance c, size_t *n))
ABSENT(fmi3GetNumberOfContinuousStates, (fmi3Instance c, size_t *n))
ABSENT(fmi3ActivateModelPartition, (fmi3Instance c, fmi3ValueReference clock, fmi3Float64 t))
