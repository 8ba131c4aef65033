/* For FMUs in which a file stands in front of the framework: fmu.c then defines
 * base_step instead of fmu_step, and so on, and the file in front, which defines
 * FMU_FRONT, has fmu_step. So it is with the questions of FMI 2.0 about a step in
 * api2.c. Functions not listed here are as always. */
#ifndef WRAP_H
#define WRAP_H

#include "fmu.h"

Instance *base_new(const Callbacks *, const char *function, const char *name, const char *guid, const char *wrong, int logging);
void base_free(Instance *);
Status base_experiment(Instance *, int has_tolerance, double tolerance, double start, int has_stop, double stop);
Status base_initialize(Instance *);
Status base_start(Instance *);
Status base_terminate(Instance *);
Status base_get_reals(Instance *, const unsigned vr[], size_t, double[]);
Status base_set_reals(Instance *, const unsigned vr[], size_t, const double[]);
Status base_set_input_derivatives(Instance *, const unsigned vr[], size_t, const int order[], const double[]);
Status base_directional(Instance *, const unsigned unknown[], size_t, const unsigned known[], size_t, const double seed[],
                        double sensitivity[]);
Status base_get_state(Instance *, void **);
Status base_set_state(Instance *, void *);
Status base_serialize(Instance *, void *, char[], size_t);
Status base_deserialize(Instance *, const char[], size_t, void **);
Status base_step(Instance *, double t, double h, int no_restore);
#if FMU_FMI == 2
fmi2Status base_CancelStep(fmi2Component);
fmi2Status base_GetStatus(fmi2Component, const fmi2StatusKind, fmi2Status *);
fmi2Status base_GetRealStatus(fmi2Component, const fmi2StatusKind, fmi2Real *);
fmi2Status base_GetBooleanStatus(fmi2Component, const fmi2StatusKind, fmi2Boolean *);
fmi2Status base_GetStringStatus(fmi2Component, const fmi2StatusKind, fmi2String *);
#endif

#if defined(FMU_CORE) /* fmu.c */
#define fmu_new base_new
#define fmu_free base_free
#define fmu_experiment base_experiment
#define fmu_initialize base_initialize
#define fmu_start base_start
#define fmu_terminate base_terminate
#define fmu_get_reals base_get_reals
#define fmu_set_reals base_set_reals
#define fmu_set_input_derivatives base_set_input_derivatives
#define fmu_directional base_directional
#define fmu_get_state base_get_state
#define fmu_set_state base_set_state
#define fmu_serialize base_serialize
#define fmu_deserialize base_deserialize
#define fmu_step base_step
#elif !defined(FMU_FRONT) /* api2.c */
#define fmi2CancelStep base_CancelStep
#define fmi2GetStatus base_GetStatus
#define fmi2GetRealStatus base_GetRealStatus
#define fmi2GetBooleanStatus base_GetBooleanStatus
#define fmi2GetStringStatus base_GetStringStatus
#endif

#endif
