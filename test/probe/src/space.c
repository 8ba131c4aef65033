/* x' = A x + B u, y = C x + D u with sizes m of u, n of x and r of y, by the explicit Euler method with the steps of
 * the caller. Values of arrays are refused in another number than that of their elements, and are NaN after a change
 * of their sizes. KILL ends the process in the step from that time, once: if the file ONCE does not exist. */
#include "fmi3.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 5, M = 1, N, R, A, B, C, D, X0, U, Y, X, end };
enum { made, configuring, entering, running };

typedef struct {
	int mode;
	uint64_t size[4]; /* by reference; 1 for time */
	double v[end][most * most]; /* with the time at 0 */
} model;

static const int shape[end][2] = {{0}, {0}, {0}, {0}, {N, N}, {N, M}, {R, N}, {R, M}, {N}, {M}, {R}, {N}};

static size_t length(const model *m, unsigned r)
{
	return r >= end || r && r < A ? 0 : m->size[shape[r][0]] * (shape[r][1] ? m->size[shape[r][1]] : 1);
}

/* add adds a product with a vector. */
static void add(const model *m, double *to, unsigned matrix, unsigned vector)
{
	size_t rows = m->size[shape[matrix][0]], columns = m->size[shape[matrix][1]];
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++)
			to[i] += m->v[matrix][i * columns + j] * m->v[vector][j];
}

static void start(model *m)
{
	memset(m, 0, sizeof *m);
	m->size[0] = m->size[M] = m->size[N] = m->size[R] = 1;
}

FMI3_EXPORT const char *fmi3GetVersion(void) { return fmi3Version; }

FMI3_EXPORT fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
	fmi3Boolean logging, fmi3Boolean events, fmi3Boolean early, const fmi3ValueReference *r, size_t n,
	fmi3InstanceEnvironment e, fmi3LogMessageCallback l, fmi3IntermediateUpdateCallback u)
{
	model *m = malloc(sizeof *m);
	start(m);
	return m;
}

FMI3_EXPORT void fmi3FreeInstance(fmi3Instance c) { free(c); }

static fmi3Status go(model *m, int from, int to)
{
	if (m->mode != from)
		return fmi3Error;
	m->mode = to;
	return fmi3OK;
}

FMI3_FUNCTION fmi3EnterConfigurationMode(fmi3Instance c) { return go(c, made, configuring); }
FMI3_FUNCTION fmi3ExitConfigurationMode(fmi3Instance c) { return go(c, configuring, made); }
FMI3_FUNCTION fmi3Terminate(fmi3Instance c) { return go(c, running, running); }

FMI3_FUNCTION fmi3Reset(fmi3Instance c)
{
	start(c);
	return fmi3OK;
}

FMI3_FUNCTION fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean a, fmi3Float64 b, fmi3Float64 t, fmi3Boolean d, fmi3Float64 e)
{
	model *m = c;
	memcpy(m->v[X], m->v[X0], sizeof m->v[X]);
	m->v[0][0] = t;
	return go(m, made, entering);
}

FMI3_FUNCTION fmi3ExitInitializationMode(fmi3Instance c) { return go(c, entering, running); }

FMI3_FUNCTION fmi3SetUInt64(fmi3Instance c, const fmi3ValueReference *r, size_t n, const fmi3UInt64 *v, size_t values)
{
	model *m = c;
	if (m->mode != configuring)
		return fmi3Error;
	for (size_t k = 0; k < n; k++) {
		if (v[k] == REFUSED)
			return fmi3Discard;
		m->size[r[k]] = v[k];
		for (int a = A; a < end; a++)
			for (int i = 0; i < most * most && (shape[a][0] == r[k] || shape[a][1] == r[k]); i++)
				m->v[a][i] = NAN;
	}
	return fmi3OK;
}

FMI3_FUNCTION fmi3GetUInt64(fmi3Instance c, const fmi3ValueReference *r, size_t n, fmi3UInt64 *v, size_t values)
{
	for (size_t k = 0; k < n; k++)
		v[k] = ((model *)c)->size[r[k]];
	return fmi3OK;
}

static fmi3Status move(model *m, const fmi3ValueReference *r, size_t n, double *to, const double *from, size_t values)
{
	size_t at = 0;
	for (size_t k = 0; k < n; k++) {
		size_t some = length(m, r[k]) * sizeof *to;
		if (at + length(m, r[k]) > values)
			return fmi3Error;
		if (r[k] == Y && to) {
			memset(m->v[Y], 0, sizeof m->v[Y]);
			add(m, m->v[Y], C, X);
			add(m, m->v[Y], D, U);
		}
		if (to)
			memcpy(to + at, m->v[r[k]], some);
		else
			memcpy(m->v[r[k]], from + at, some);
		at += length(m, r[k]);
	}
	return at == values && m->mode != configuring ? fmi3OK : fmi3Error;
}

FMI3_FUNCTION fmi3GetFloat64(fmi3Instance c, const fmi3ValueReference *r, size_t n, fmi3Float64 *v, size_t values)
{
	return move(c, r, n, v, NULL, values);
}

FMI3_FUNCTION fmi3SetFloat64(fmi3Instance c, const fmi3ValueReference *r, size_t n, const fmi3Float64 *v, size_t values)
{
	return move(c, r, n, NULL, v, values);
}

FMI3_FUNCTION fmi3DoStep(fmi3Instance c, fmi3Float64 t, fmi3Float64 h, fmi3Boolean keep, fmi3Boolean *event, fmi3Boolean *stop,
	fmi3Boolean *early, fmi3Float64 *last)
{
	model *m = c;
	double slope[most] = {0};
#ifdef KILL
	FILE *f = t >= KILL ? fopen(ONCE, "r") : stdin;
	if (!f) {
		fopen(ONCE, "w");
		abort();
	}
#endif
	add(m, slope, A, X);
	add(m, slope, B, U);
	for (size_t k = 0; k < m->size[N]; k++)
		m->v[X][k] += h * slope[k];
	*event = *stop = *early = false;
	*last = m->v[0][0] = t + h;
	return go(m, running, running);
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
	model *m = c; /* a state does not change sizes: those of the instance must be the same */
	if (memcmp(m->size, ((model *)s)->size, sizeof m->size))
		return fmi3Error;
	memcpy(m, s, sizeof *m);
	return fmi3OK;
}

FMI3_FUNCTION fmi3FreeFMUState(fmi3Instance c, fmi3FMUState *s)
{
	free(*s);
	*s = NULL;
	return fmi3OK;
}

FMI3_FUNCTION fmi3SerializedFMUStateSize(fmi3Instance c, fmi3FMUState s, size_t *n)
{
	*n = sizeof(model);
	return fmi3OK;
}

FMI3_FUNCTION fmi3SerializeFMUState(fmi3Instance c, fmi3FMUState s, fmi3Byte *b, size_t n)
{
	memcpy(b, s, n);
	return fmi3OK;
}

FMI3_FUNCTION fmi3DeserializeFMUState(fmi3Instance c, const fmi3Byte *b, size_t n, fmi3FMUState *s)
{
	if (!*s)
		*s = malloc(n);
	memcpy(*s, b, n);
	return fmi3OK;
}
