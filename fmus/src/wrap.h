/* For FMUs whose exported functions stand in front of the framework's: fmu.c
 * then defines base_DoStep instead of fmi2DoStep, and so on, and the file in
 * front, which defines FMU_FRONT, exports fmi2DoStep. Functions not listed here
 * are exported by fmu.c as always. */
#ifndef WRAP_H
#define WRAP_H

#include "fmi2.h"

fmi2Component base_Instantiate(fmi2String, fmi2Type, fmi2String, fmi2String, const fmi2CallbackFunctions *,
                               fmi2Boolean, fmi2Boolean);
void base_FreeInstance(fmi2Component);
fmi2Status base_SetupExperiment(fmi2Component, fmi2Boolean, fmi2Real, fmi2Real, fmi2Boolean, fmi2Real);
fmi2Status base_EnterInitializationMode(fmi2Component);
fmi2Status base_ExitInitializationMode(fmi2Component);
fmi2Status base_Terminate(fmi2Component);
fmi2Status base_GetReal(fmi2Component, const fmi2ValueReference[], size_t, fmi2Real[]);
fmi2Status base_SetReal(fmi2Component, const fmi2ValueReference[], size_t, const fmi2Real[]);
fmi2Status base_SetRealInputDerivatives(fmi2Component, const fmi2ValueReference[], size_t, const fmi2Integer[],
                                        const fmi2Real[]);
fmi2Status base_GetDirectionalDerivative(fmi2Component, const fmi2ValueReference[], size_t,
                                         const fmi2ValueReference[], size_t, const fmi2Real[], fmi2Real[]);
fmi2Status base_GetFMUstate(fmi2Component, fmi2FMUstate *);
fmi2Status base_SetFMUstate(fmi2Component, fmi2FMUstate);
fmi2Status base_SerializeFMUstate(fmi2Component, fmi2FMUstate, fmi2Byte[], size_t);
fmi2Status base_DeSerializeFMUstate(fmi2Component, const fmi2Byte[], size_t, fmi2FMUstate *);
fmi2Status base_DoStep(fmi2Component, fmi2Real, fmi2Real, fmi2Boolean);
fmi2Status base_CancelStep(fmi2Component);
fmi2Status base_GetStatus(fmi2Component, const fmi2StatusKind, fmi2Status *);
fmi2Status base_GetRealStatus(fmi2Component, const fmi2StatusKind, fmi2Real *);
fmi2Status base_GetBooleanStatus(fmi2Component, const fmi2StatusKind, fmi2Boolean *);
fmi2Status base_GetStringStatus(fmi2Component, const fmi2StatusKind, fmi2String *);

#ifndef FMU_FRONT
#define fmi2Instantiate base_Instantiate
#define fmi2FreeInstance base_FreeInstance
#define fmi2SetupExperiment base_SetupExperiment
#define fmi2EnterInitializationMode base_EnterInitializationMode
#define fmi2ExitInitializationMode base_ExitInitializationMode
#define fmi2Terminate base_Terminate
#define fmi2GetReal base_GetReal
#define fmi2SetReal base_SetReal
#define fmi2SetRealInputDerivatives base_SetRealInputDerivatives
#define fmi2GetDirectionalDerivative base_GetDirectionalDerivative
#define fmi2GetFMUstate base_GetFMUstate
#define fmi2SetFMUstate base_SetFMUstate
#define fmi2SerializeFMUstate base_SerializeFMUstate
#define fmi2DeSerializeFMUstate base_DeSerializeFMUstate
#define fmi2DoStep base_DoStep
#define fmi2CancelStep base_CancelStep
#define fmi2GetStatus base_GetStatus
#define fmi2GetRealStatus base_GetRealStatus
#define fmi2GetBooleanStatus base_GetBooleanStatus
#define fmi2GetStringStatus base_GetStringStatus
#endif

#endif
