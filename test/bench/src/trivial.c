/* An FMU with one input and one output and nothing to compute: what is left of a
 * run of these is what the master costs. The parameter work makes it compute, in
 * additions that wait for each other. */
#include <stdlib.h>

#include "fmi2.h"

typedef struct {
	double u, y, work;
} Trivial;

FMI2_Export const char *fmi2GetTypesPlatform(void) { return "default"; }
FMI2_Export const char *fmi2GetVersion(void) { return "2.0"; }
FMI2_Export fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[])
{
	(void)c, (void)on, (void)n, (void)categories;
	return fmi2OK;
}
FMI2_Export fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
	const fmi2CallbackFunctions *f, fmi2Boolean visible, fmi2Boolean logging)
{
	(void)name, (void)type, (void)guid, (void)resources, (void)f, (void)visible, (void)logging;
	return calloc(1, sizeof(Trivial));
}
FMI2_Export void fmi2FreeInstance(fmi2Component c) { free(c); }
FMI2_Export fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean hasTolerance, fmi2Real tolerance, fmi2Real start,
	fmi2Boolean hasStop, fmi2Real stop)
{
	(void)c, (void)hasTolerance, (void)tolerance, (void)start, (void)hasStop, (void)stop;
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2EnterInitializationMode(fmi2Component c) { return (void)c, fmi2OK; }
FMI2_Export fmi2Status fmi2ExitInitializationMode(fmi2Component c) { return (void)c, fmi2OK; }
FMI2_Export fmi2Status fmi2Terminate(fmi2Component c) { return (void)c, fmi2OK; }
FMI2_Export fmi2Status fmi2Reset(fmi2Component c)
{
	*(Trivial *)c = (Trivial){0};
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real v[])
{
	Trivial *m = c;
	for (size_t i = 0; i < n; i++)
		*(vr[i] == 0 ? &m->u : vr[i] == 1 ? &m->y : &m->work) = v[i];
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real v[])
{
	Trivial *m = c;
	for (size_t i = 0; i < n; i++)
		v[i] = vr[i] == 0 ? m->u : vr[i] == 1 ? m->y : m->work;
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean noRestore)
{
	(void)t, (void)h, (void)noRestore;
	Trivial *m = c;
	double sum = m->u + 1;
	for (double k = 0; k < m->work; k++)
		sum += 1e-3;
	m->y = sum;
	return fmi2OK;
}

#define NONE(name, ...) \
	FMI2_Export fmi2Status name(fmi2Component c, __VA_ARGS__) { return (void)c, fmi2Error; }
NONE(fmi2GetInteger, const fmi2ValueReference vr[], size_t n, fmi2Integer v[])
NONE(fmi2GetBoolean, const fmi2ValueReference vr[], size_t n, fmi2Boolean v[])
NONE(fmi2GetString, const fmi2ValueReference vr[], size_t n, fmi2String v[])
NONE(fmi2SetInteger, const fmi2ValueReference vr[], size_t n, const fmi2Integer v[])
NONE(fmi2SetBoolean, const fmi2ValueReference vr[], size_t n, const fmi2Boolean v[])
NONE(fmi2SetString, const fmi2ValueReference vr[], size_t n, const fmi2String v[])
FMI2_Export fmi2Status fmi2CancelStep(fmi2Component c) { return (void)c, fmi2Error; }
NONE(fmi2GetStatus, const fmi2StatusKind k, fmi2Status *v)
NONE(fmi2GetRealStatus, const fmi2StatusKind k, fmi2Real *v)
NONE(fmi2GetIntegerStatus, const fmi2StatusKind k, fmi2Integer *v)
NONE(fmi2GetBooleanStatus, const fmi2StatusKind k, fmi2Boolean *v)
NONE(fmi2GetStringStatus, const fmi2StatusKind k, fmi2String *v)
