/* A sampled controller y = -kp u + i, i += -ki interval u, and more that changes at events: s = d + n, z' = s, and a
 * time event every pace seconds, which takes two iterations; updates counts the iterations. It refuses what FMI 3.0 does not allow: what belongs to
 * the Clock outside of its ticks, a change of d or n outside of Event Mode, a step over the next event. */
#include "fmi3.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIME, TICK, U, Y, KP, KI, INTERVAL, D, S, PACE, AT, Z, reals, N = reals, STAIRS, TICKS, FAULT, KIND, UPDATES, end };
enum { made, entering, event, stepping };
enum { fine, endless, nowhere, ending, still, crash, hang, unknown, halves, crash_entering, late };

typedef struct {
	double v[reals];
	int n[end - reals];
	char word[32];
	int mode, active, stepped_up;
	double i, next;
	fmi3LogMessageCallback log;
	fmi3InstanceEnvironment environment;
} model;

#define INT(m, r) (m)->n[(r) - reals]
#define NEAR 1e-9

static fmi3Status refuse(model *m, const char *why)
{
	m->log(m->environment, fmi3Error, "logStatusError", why);
	return fmi3Error;
}

static int faulty(const model *m, int fault) { return INT(m, FAULT) == fault && m->v[TIME] >= m->v[AT] - NEAR; }

FMI3_EXPORT const char *fmi3GetVersion(void) { return fmi3Version; }

FMI3_EXPORT fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
	fmi3Boolean logging, fmi3Boolean events, fmi3Boolean early, const fmi3ValueReference *r, size_t n,
	fmi3InstanceEnvironment e, fmi3LogMessageCallback l, fmi3IntermediateUpdateCallback u)
{
	model *m = calloc(1, sizeof *m);
	m->log = l;
	m->environment = e;
	m->v[KP] = m->v[KI] = 1;
	m->v[INTERVAL] = 0.1;
	m->next = INFINITY;
	return events && early ? m : NULL;
}

FMI3_EXPORT void fmi3FreeInstance(fmi3Instance c) { free(c); }

static fmi3Status go(model *m, int from, int to)
{
	if (m->mode != from)
		return refuse(m, "called in the wrong mode");
	m->mode = to;
	return fmi3OK;
}

FMI3_FUNCTION fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean a, fmi3Float64 b, fmi3Float64 t, fmi3Boolean d, fmi3Float64 e)
{
	model *m = c;
	m->v[TIME] = t;
	if (m->v[PACE] > 0)
		m->next = t + m->v[PACE];
	return go(m, made, entering);
}

FMI3_FUNCTION fmi3ExitInitializationMode(fmi3Instance c) { return go(c, entering, event); }
FMI3_FUNCTION fmi3EnterStepMode(fmi3Instance c) { return go(c, event, stepping); }
FMI3_FUNCTION fmi3Terminate(fmi3Instance c) { return ((model *)c)->mode >= event ? fmi3OK : fmi3Error; }

FMI3_FUNCTION fmi3EnterEventMode(fmi3Instance c)
{
	if (faulty(c, crash_entering))
		*(volatile int *)0 = 1;
	return go(c, stepping, event);
}

static fmi3Status access(model *m, const fmi3ValueReference *r, size_t n, double *reals_out, const double *reals_in,
	fmi3Int32 *ints_out, const fmi3Int32 *ints_in)
{
	for (size_t k = 0; k < n; k++) {
		unsigned x = r[k];
		if ((x == U || x == Y) && m->mode >= event && !m->active)
			return refuse(m, "a variable of the Clock is used although the Clock does not tick");
		if (x == Y && m->active)
			m->v[Y] = -m->v[KP] * m->v[U] + m->i;
		if (m->mode == stepping && (x == D && reals_in && reals_in[k] != m->v[D] || x == N && ints_in && ints_in[k] != INT(m, N)))
			return refuse(m, "a discrete input changes outside of Event Mode");
		if (reals_out)
			reals_out[k] = m->v[x];
		else if (reals_in)
			m->v[x] = reals_in[k];
		else if (ints_out)
			ints_out[k] = INT(m, x);
		else
			INT(m, x) = ints_in[k];
	}
	return fmi3OK;
}

FMI3_FUNCTION fmi3GetFloat64(fmi3Instance c, const fmi3ValueReference *r, size_t n, fmi3Float64 *v, size_t values)
{
	return access(c, r, n, v, NULL, NULL, NULL);
}

FMI3_FUNCTION fmi3SetFloat64(fmi3Instance c, const fmi3ValueReference *r, size_t n, const fmi3Float64 *v, size_t values)
{
	return access(c, r, n, NULL, v, NULL, NULL);
}

FMI3_FUNCTION fmi3GetInt32(fmi3Instance c, const fmi3ValueReference *r, size_t n, fmi3Int32 *v, size_t values)
{
	return access(c, r, n, NULL, NULL, v, NULL);
}

FMI3_FUNCTION fmi3SetInt32(fmi3Instance c, const fmi3ValueReference *r, size_t n, const fmi3Int32 *v, size_t values)
{
	return access(c, r, n, NULL, NULL, NULL, v);
}

FMI3_FUNCTION fmi3SetString(fmi3Instance c, const fmi3ValueReference *r, size_t n, const fmi3String *v, size_t values)
{
	model *m = c;
	if (m->mode == stepping)
		return refuse(m, "a String is set outside of Event Mode");
	snprintf(m->word, sizeof m->word, "%s", v[0]);
	return fmi3OK;
}

FMI3_FUNCTION fmi3GetString(fmi3Instance c, const fmi3ValueReference *r, size_t n, fmi3String *v, size_t values)
{
	v[0] = ((model *)c)->word;
	return fmi3OK;
}

FMI3_FUNCTION fmi3SetClock(fmi3Instance c, const fmi3ValueReference *r, size_t n, const fmi3Clock *v)
{
	model *m = c;
	if (m->mode != event)
		return refuse(m, "a Clock ticks outside of Event Mode");
	m->active = v[0];
	return fmi3OK;
}

FMI3_FUNCTION fmi3GetIntervalDecimal(fmi3Instance c, const fmi3ValueReference *r, size_t n, fmi3Float64 *v, fmi3IntervalQualifier *q)
{
	model *m = c;
	v[0] = m->v[INTERVAL];
	q[0] = m->mode == entering ? fmi3IntervalChanged : fmi3IntervalUnchanged;
	if (INT(m, KIND) == 1) { /* changing */
		v[0] *= INT(m, TICKS) + 1;
		q[0] = fmi3IntervalChanged;
	} else if (INT(m, KIND) == 2) /* countdown */
		q[0] = m->stepped_up ? fmi3IntervalChanged : fmi3IntervalNotYetKnown;
	m->stepped_up = 0;
	if (INT(m, FAULT) == unknown)
		v[0] = NAN;
	return fmi3OK;
}

FMI3_FUNCTION fmi3GetShiftDecimal(fmi3Instance c, const fmi3ValueReference *r, size_t n, fmi3Float64 *v)
{
	v[0] = 0;
	return fmi3OK;
}

FMI3_FUNCTION fmi3UpdateDiscreteStates(fmi3Instance c, fmi3Boolean *again, fmi3Boolean *stop, fmi3Boolean *nominals,
	fmi3Boolean *values, fmi3Boolean *has_next, fmi3Float64 *next)
{
	model *m = c;
	if (m->mode != event)
		return refuse(m, "called outside of Event Mode");
	if (faulty(m, crash))
		*(volatile int *)0 = 1;
	while (faulty(m, hang))
		;
	*nominals = *values = 0;
	INT(m, UPDATES)++;
	*again = faulty(m, endless);
	*stop = faulty(m, ending);
	if (m->active) {
		m->v[Y] = -m->v[KP] * m->v[U] + m->i;
		m->i -= m->v[KI] * m->v[INTERVAL] * m->v[U];
		m->active = 0;
		INT(m, TICKS)++;
	}
	m->v[S] = m->v[D] + INT(m, N);
	if (m->v[TIME] >= m->next - NEAR) {
		m->next += m->v[PACE];
		INT(m, STAIRS)++;
		m->stepped_up = *again = 1;
	}
	*has_next = isfinite(m->next);
	*next = faulty(m, nowhere) ? NAN : faulty(m, late) ? m->v[TIME] : m->next;
	*has_next = *has_next || faulty(m, nowhere) || faulty(m, late);
	return fmi3OK;
}

FMI3_FUNCTION fmi3DoStep(fmi3Instance c, fmi3Float64 t, fmi3Float64 h, fmi3Boolean keep, fmi3Boolean *event_needed, fmi3Boolean *stop,
	fmi3Boolean *early, fmi3Float64 *last)
{
	model *m = c;
	if (m->mode != stepping)
		return refuse(m, "a step outside of Step Mode");
	if (t != m->v[TIME])
		return refuse(m, "a step from another time than the present one");
	if (t + h > m->next + NEAR)
		return refuse(m, "a step over the next event");
	*event_needed = *stop = *early = 0;
	if (faulty(m, still))
		h = 0;
	if (faulty(m, halves) && h > NEAR * 1e3)
		h /= 2;
	*early = faulty(m, still) || faulty(m, halves) && h > NEAR * 5e2;
	m->v[Z] += h * m->v[S];
	*last = m->v[TIME] = t + h;
	return fmi3OK;
}

FMI3_FUNCTION fmi3GetFMUState(fmi3Instance c, fmi3FMUState *s)
{
	if (!*s)
		*s = malloc(sizeof(model));
	memcpy(*s, c, sizeof(model));
	return fmi3OK;
}

FMI3_FUNCTION fmi3SetFMUState(fmi3Instance c, fmi3FMUState s)
{
	model *m = c, now = *m;
	memcpy(m, s, sizeof *m);
	m->log = now.log;
	m->environment = now.environment;
	return fmi3OK;
}

FMI3_FUNCTION fmi3FreeFMUState(fmi3Instance c, fmi3FMUState *s)
{
	free(*s);
	*s = NULL;
	return fmi3OK;
}

FMI3_FUNCTION fmi3SerializedFMUStateSize(fmi3Instance c, fmi3FMUState s, size_t *size)
{
	*size = sizeof(model);
	return fmi3OK;
}

FMI3_FUNCTION fmi3SerializeFMUState(fmi3Instance c, fmi3FMUState s, fmi3Byte *to, size_t size)
{
	memcpy(to, s, size);
	memset(to + offsetof(model, log), 0, size - offsetof(model, log)); /* the same bytes in every process */
	return fmi3OK;
}

FMI3_FUNCTION fmi3DeserializeFMUState(fmi3Instance c, const fmi3Byte *from, size_t size, fmi3FMUState *s)
{
	*s = malloc(size);
	memcpy(*s, from, size);
	return fmi3OK;
}
