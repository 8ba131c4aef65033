/* An oscillator in a chain, for measurements: a mass, driven by a force that never
 * decays, and a spring to the next mass.
 *
 *	s' = v - v_next,   F = k s,   v' = F_in - F - d v + q,   q'' = -w² q
 *
 * It takes `work` small steps in each communication step, so that a step costs what
 * work asks for. Nothing in it tends to zero: the cost does not depend on denormal
 * numbers. No output depends directly on an input. */
#include <stdlib.h>
#include <string.h>

#include "fmi2.h"

enum { F_IN, V_NEXT, F, V, WORK, DRIVE, VARIABLES };
enum { INPUTS = 2, ORDERS = 2 };

typedef struct {
	double u[INPUTS], du[INPUTS][ORDERS]; /* inputs and their derivatives at the start of the step */
	double s, v, p, q;
	double F, work, drive;
} Cell;

static double *at(Cell *m, fmi2ValueReference vr)
{
	double *all[VARIABLES] = {&m->u[F_IN], &m->u[V_NEXT], &m->F, &m->v, &m->work, &m->drive};
	return vr < VARIABLES ? all[vr] : NULL;
}

FMI2_Export const char *fmi2GetTypesPlatform(void) { return "default"; }
FMI2_Export const char *fmi2GetVersion(void) { return "2.0"; }
FMI2_Export fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[])
{
	(void)c, (void)on, (void)n, (void)categories;
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2Reset(fmi2Component c)
{
	*(Cell *)c = (Cell){.work = 1, .drive = 1, .q = 1};
	return fmi2OK;
}
FMI2_Export fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
	const fmi2CallbackFunctions *f, fmi2Boolean visible, fmi2Boolean logging)
{
	(void)name, (void)type, (void)guid, (void)resources, (void)f, (void)visible, (void)logging;
	Cell *m = malloc(sizeof *m);
	if (m)
		fmi2Reset(m);
	return m;
}
FMI2_Export void fmi2FreeInstance(fmi2Component c) { free(c); }
FMI2_Export fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean hasTolerance, fmi2Real tolerance, fmi2Real start,
	fmi2Boolean hasStop, fmi2Real stop)
{
	(void)c, (void)hasTolerance, (void)tolerance, (void)start, (void)hasStop, (void)stop;
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2EnterInitializationMode(fmi2Component c)
{
	((Cell *)c)->q = ((Cell *)c)->drive;
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2ExitInitializationMode(fmi2Component c) { return (void)c, fmi2OK; }
FMI2_Export fmi2Status fmi2Terminate(fmi2Component c) { return (void)c, fmi2OK; }
FMI2_Export fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real v[])
{
	for (size_t i = 0; i < n; i++) {
		double *to = at(c, vr[i]);
		if (!to)
			return fmi2Error;
		*to = v[i];
	}
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real v[])
{
	for (size_t i = 0; i < n; i++) {
		double *from = at(c, vr[i]);
		if (!from)
			return fmi2Error;
		v[i] = *from;
	}
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n,
	const fmi2Integer order[], const fmi2Real v[])
{
	for (size_t i = 0; i < n; i++) {
		if (vr[i] >= INPUTS || order[i] < 1 || order[i] > ORDERS)
			return fmi2Error;
		((Cell *)c)->du[vr[i]][order[i] - 1] = v[i];
	}
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean noRestore)
{
	(void)t, (void)noRestore;
	const double k = 100, d = 1, w2 = 49;
	Cell *m = c;
	double s = m->s, v = m->v, p = m->p, q = m->q, dt = h / m->work;
	for (double j = 0; j < m->work; j++) {
		double x = (j + 0.5) * dt;
		double force = m->u[F_IN] + x * (m->du[F_IN][0] + x / 2 * m->du[F_IN][1]);
		double next = m->u[V_NEXT] + x * (m->du[V_NEXT][0] + x / 2 * m->du[V_NEXT][1]);
		p -= dt * w2 * q;
		q += dt * p;
		v += dt * (force - k * s - d * v + q);
		s += dt * (v - next);
	}
	m->s = s, m->v = v, m->p = p, m->q = q, m->F = k * s;
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *to)
{
	if (!*to && !(*to = malloc(sizeof(Cell))))
		return fmi2Error;
	*(Cell *)*to = *(Cell *)c;
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate from)
{
	*(Cell *)c = *(Cell *)from;
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state)
{
	(void)c;
	free(*state);
	*state = NULL;
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *n)
{
	(void)c, (void)state;
	*n = sizeof(Cell);
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t n)
{
	(void)c;
	memcpy(bytes, state, n);
	return fmi2OK;
}
FMI2_Export fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t n, fmi2FMUstate *state)
{
	if (fmi2GetFMUstate(c, state) != fmi2OK)
		return fmi2Error;
	memcpy(*state, bytes, n);
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
