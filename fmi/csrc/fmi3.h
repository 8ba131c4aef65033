/* The C interface of FMI 3.0, as described in sections 2.3, 3.2, 4.2 and 5.2 of the
 * standard. Written for this project; binary compatible with the headers of the
 * standard. */
#ifndef FMI3_H
#define FMI3_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef FMI3_EXPORT
#if defined(_WIN32)
#define FMI3_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define FMI3_EXPORT __attribute__((visibility("default")))
#else
#define FMI3_EXPORT
#endif
#endif

#define fmi3Version "3.0"

typedef void *fmi3Instance;
typedef void *fmi3InstanceEnvironment;
typedef void *fmi3FMUState;
typedef uint32_t fmi3ValueReference;
typedef float fmi3Float32;
typedef double fmi3Float64;
typedef int8_t fmi3Int8;
typedef uint8_t fmi3UInt8;
typedef int16_t fmi3Int16;
typedef uint16_t fmi3UInt16;
typedef int32_t fmi3Int32;
typedef uint32_t fmi3UInt32;
typedef int64_t fmi3Int64;
typedef uint64_t fmi3UInt64;
typedef bool fmi3Boolean;
typedef const char *fmi3String;
typedef uint8_t fmi3Byte;
typedef const fmi3Byte *fmi3Binary;
typedef bool fmi3Clock;

typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef enum { fmi3Independent, fmi3Constant, fmi3Fixed, fmi3Tunable, fmi3Discrete, fmi3Dependent } fmi3DependencyKind;
typedef enum { fmi3IntervalNotYetKnown, fmi3IntervalUnchanged, fmi3IntervalChanged } fmi3IntervalQualifier;

typedef void (*fmi3LogMessageCallback)(fmi3InstanceEnvironment, fmi3Status, fmi3String category, fmi3String message);
typedef void (*fmi3ClockUpdateCallback)(fmi3InstanceEnvironment);
typedef void (*fmi3IntermediateUpdateCallback)(fmi3InstanceEnvironment, fmi3Float64 time, fmi3Boolean setRequested,
                                               fmi3Boolean getAllowed, fmi3Boolean stepFinished, fmi3Boolean canReturnEarly,
                                               fmi3Boolean *earlyReturnRequested, fmi3Float64 *earlyReturnTime);
typedef void (*fmi3LockPreemptionCallback)(void);
typedef void (*fmi3UnlockPreemptionCallback)(void);

#define FMI3_FUNCTION FMI3_EXPORT fmi3Status
#define FMI3_REFERENCES fmi3Instance, const fmi3ValueReference[], size_t

/* Inquiry, creation, destruction. */
FMI3_EXPORT const char *fmi3GetVersion(void);
FMI3_FUNCTION fmi3SetDebugLogging(fmi3Instance, fmi3Boolean on, size_t n, const fmi3String categories[]);
FMI3_EXPORT fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resourcePath, fmi3Boolean visible,
                                                      fmi3Boolean loggingOn, fmi3InstanceEnvironment, fmi3LogMessageCallback);
FMI3_EXPORT fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resourcePath, fmi3Boolean visible,
                                                     fmi3Boolean loggingOn, fmi3Boolean eventModeUsed, fmi3Boolean earlyReturnAllowed,
                                                     const fmi3ValueReference intermediate[], size_t nIntermediate,
                                                     fmi3InstanceEnvironment, fmi3LogMessageCallback,
                                                     fmi3IntermediateUpdateCallback);
FMI3_EXPORT fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String resourcePath,
                                                           fmi3Boolean visible, fmi3Boolean loggingOn, fmi3InstanceEnvironment,
                                                           fmi3LogMessageCallback, fmi3ClockUpdateCallback,
                                                           fmi3LockPreemptionCallback, fmi3UnlockPreemptionCallback);
FMI3_EXPORT void fmi3FreeInstance(fmi3Instance);

/* Life cycle. */
FMI3_FUNCTION fmi3EnterInitializationMode(fmi3Instance, fmi3Boolean toleranceDefined, fmi3Float64 tolerance, fmi3Float64 startTime,
                                          fmi3Boolean stopTimeDefined, fmi3Float64 stopTime);
FMI3_FUNCTION fmi3ExitInitializationMode(fmi3Instance);
FMI3_FUNCTION fmi3EnterEventMode(fmi3Instance);
FMI3_FUNCTION fmi3EnterConfigurationMode(fmi3Instance);
FMI3_FUNCTION fmi3ExitConfigurationMode(fmi3Instance);
FMI3_FUNCTION fmi3Terminate(fmi3Instance);
FMI3_FUNCTION fmi3Reset(fmi3Instance);

/* Variables. */
#define FMI3_TYPE(T)                                                                              \
	FMI3_FUNCTION fmi3Get##T(FMI3_REFERENCES, fmi3##T[], size_t nValues);                         \
	FMI3_FUNCTION fmi3Set##T(FMI3_REFERENCES, const fmi3##T[], size_t nValues);
FMI3_TYPE(Float32)
FMI3_TYPE(Float64)
FMI3_TYPE(Int8)
FMI3_TYPE(UInt8)
FMI3_TYPE(Int16)
FMI3_TYPE(UInt16)
FMI3_TYPE(Int32)
FMI3_TYPE(UInt32)
FMI3_TYPE(Int64)
FMI3_TYPE(UInt64)
FMI3_TYPE(Boolean)
FMI3_TYPE(String)
FMI3_FUNCTION fmi3GetBinary(FMI3_REFERENCES, size_t sizes[], fmi3Binary[], size_t nValues);
FMI3_FUNCTION fmi3SetBinary(FMI3_REFERENCES, const size_t sizes[], const fmi3Binary[], size_t nValues);
FMI3_FUNCTION fmi3GetClock(FMI3_REFERENCES, fmi3Clock[]);
FMI3_FUNCTION fmi3SetClock(FMI3_REFERENCES, const fmi3Clock[]);
FMI3_FUNCTION fmi3GetNumberOfVariableDependencies(fmi3Instance, fmi3ValueReference, size_t *);
FMI3_FUNCTION fmi3GetVariableDependencies(fmi3Instance, fmi3ValueReference, size_t elements[], fmi3ValueReference independents[],
                                          size_t elementsOfIndependents[], fmi3DependencyKind[], size_t n);

/* State. */
FMI3_FUNCTION fmi3GetFMUState(fmi3Instance, fmi3FMUState *);
FMI3_FUNCTION fmi3SetFMUState(fmi3Instance, fmi3FMUState);
FMI3_FUNCTION fmi3FreeFMUState(fmi3Instance, fmi3FMUState *);
FMI3_FUNCTION fmi3SerializedFMUStateSize(fmi3Instance, fmi3FMUState, size_t *);
FMI3_FUNCTION fmi3SerializeFMUState(fmi3Instance, fmi3FMUState, fmi3Byte[], size_t);
FMI3_FUNCTION fmi3DeserializeFMUState(fmi3Instance, const fmi3Byte[], size_t, fmi3FMUState *);

/* Derivatives. */
#define FMI3_DERIVATIVE(name)                                                                     \
	FMI3_FUNCTION name(fmi3Instance, const fmi3ValueReference unknowns[], size_t, const fmi3ValueReference knowns[], size_t, \
	                   const fmi3Float64 seed[], size_t nSeed, fmi3Float64 sensitivity[], size_t nSensitivity);
FMI3_DERIVATIVE(fmi3GetDirectionalDerivative)
FMI3_DERIVATIVE(fmi3GetAdjointDerivative)
FMI3_FUNCTION fmi3GetOutputDerivatives(FMI3_REFERENCES, const fmi3Int32 orders[], fmi3Float64[], size_t nValues);

/* Clocks. */
FMI3_FUNCTION fmi3GetIntervalDecimal(FMI3_REFERENCES, fmi3Float64[], fmi3IntervalQualifier[]);
FMI3_FUNCTION fmi3GetIntervalFraction(FMI3_REFERENCES, fmi3UInt64 counters[], fmi3UInt64 resolutions[], fmi3IntervalQualifier[]);
FMI3_FUNCTION fmi3GetShiftDecimal(FMI3_REFERENCES, fmi3Float64[]);
FMI3_FUNCTION fmi3GetShiftFraction(FMI3_REFERENCES, fmi3UInt64 counters[], fmi3UInt64 resolutions[]);
FMI3_FUNCTION fmi3SetIntervalDecimal(FMI3_REFERENCES, const fmi3Float64[]);
FMI3_FUNCTION fmi3SetIntervalFraction(FMI3_REFERENCES, const fmi3UInt64 counters[], const fmi3UInt64 resolutions[]);
FMI3_FUNCTION fmi3SetShiftDecimal(FMI3_REFERENCES, const fmi3Float64[]);
FMI3_FUNCTION fmi3SetShiftFraction(FMI3_REFERENCES, const fmi3UInt64 counters[], const fmi3UInt64 resolutions[]);
FMI3_FUNCTION fmi3EvaluateDiscreteStates(fmi3Instance);
FMI3_FUNCTION fmi3UpdateDiscreteStates(fmi3Instance, fmi3Boolean *needUpdate, fmi3Boolean *terminate, fmi3Boolean *nominalsChanged,
                                       fmi3Boolean *valuesChanged, fmi3Boolean *nextEventTimeDefined, fmi3Float64 *nextEventTime);

/* Co-Simulation. */
FMI3_FUNCTION fmi3EnterStepMode(fmi3Instance);
FMI3_FUNCTION fmi3DoStep(fmi3Instance, fmi3Float64 currentCommunicationPoint, fmi3Float64 communicationStepSize,
                         fmi3Boolean noSetFMUStatePriorToCurrentPoint, fmi3Boolean *eventHandlingNeeded,
                         fmi3Boolean *terminateSimulation, fmi3Boolean *earlyReturn, fmi3Float64 *lastSuccessfulTime);

/* Model Exchange. */
FMI3_FUNCTION fmi3EnterContinuousTimeMode(fmi3Instance);
FMI3_FUNCTION fmi3CompletedIntegratorStep(fmi3Instance, fmi3Boolean noSetFMUStatePriorToCurrentPoint, fmi3Boolean *enterEventMode,
                                          fmi3Boolean *terminateSimulation);
FMI3_FUNCTION fmi3SetTime(fmi3Instance, fmi3Float64);
FMI3_FUNCTION fmi3SetContinuousStates(fmi3Instance, const fmi3Float64[], size_t);
FMI3_FUNCTION fmi3GetContinuousStateDerivatives(fmi3Instance, fmi3Float64[], size_t);
FMI3_FUNCTION fmi3GetEventIndicators(fmi3Instance, fmi3Float64[], size_t);
FMI3_FUNCTION fmi3GetContinuousStates(fmi3Instance, fmi3Float64[], size_t);
FMI3_FUNCTION fmi3GetNominalsOfContinuousStates(fmi3Instance, fmi3Float64[], size_t);
FMI3_FUNCTION fmi3GetNumberOfEventIndicators(fmi3Instance, size_t *);
FMI3_FUNCTION fmi3GetNumberOfContinuousStates(fmi3Instance, size_t *);

/* Scheduled Execution. */
FMI3_FUNCTION fmi3ActivateModelPartition(fmi3Instance, fmi3ValueReference clock, fmi3Float64 activationTime);

#ifdef __cplusplus
}
#endif
#endif
