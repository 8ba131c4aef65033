/* chain: any number of masses in a row, a piece of the nonlinear oscillator chain
 * (meyer 6.2, 6.6). The first and the last mass are coupling masses: their motion
 * can be read, and the forces on them are inputs. What is random depends on the
 * seed and on a mass' number in the whole chain alone, so that the whole is the
 * same however it is cut.
 *
 * Where the paper leaves it open: masses with a contact start at -|x|, since
 * e^(B x) is without bounds at its other starts. */
#include "oscillators.h"

#include <math.h>

enum {
	M, C, D, C3, D3,
	FMIN, FMAX, FIRST, PERIOD, DURATION, DELTA,
	A, B,
	X0, V0,
	RTOL, ATOLX, ATOLV
};
enum { MASSES, NUMBER, TOTAL, SEED, IMPULSES, BLOCK, CONTACTS, GROUND_LEFT, GROUND_RIGHT };

/* Streams of random numbers. */
enum { START_X, START_V, PUSHED, STRENGTH, DIRECTION, TOUCHING };

static const char *extent(const Instance *m, size_t *kept, size_t *scratch) {
	const int *n = m->s.n;
	if (n[MASSES] > 1000000) return "there must be at most 1000000 masses";
	if (n[NUMBER] > 1000000000) return "the number of the first mass must be at most 1000000000";
	if (n[IMPULSES] > 10 || n[CONTACTS] > 10) return "impulses and contacts are counts of masses among ten";
	if (n[GROUND_LEFT] > 1 || n[GROUND_RIGHT] > 1) return "ground_left and ground_right must be 0 or 1";
	oscillators_extent(n[MASSES], kept, scratch);
	return 0;
}

/* start gives x and v of the i-th mass at the start. */
static void start(const Instance *m, int i, double *x, double *v) {
	const double *p = m->s.p;
	const int *n = m->s.n;
	*x = p[X0] * (2 * uniform(n[SEED], i, START_X) - 1);
	*v = p[V0] * (2 * uniform(n[SEED], i, START_V) - 1);
	if (random_pick(n[SEED], i, TOUCHING, n[CONTACTS])) *x = -fabs(*x);
}

/* strength gives the amplitude of the impulses on the i-th mass. */
static double strength(const Instance *m, int i) {
	const double *p = m->s.p;
	const int *n = m->s.n;
	if (n[BLOCK] > 0) { /* on both sides of each joint of blocks, in turn to the right and to the left */
		int place = i % n[BLOCK];
		if (i == 1 || i == n[TOTAL]) return 0;
		return place == 0 ? p[FMAX] : place == 1 % n[BLOCK] ? -p[FMAX] : 0;
	}
	if (!random_pick(n[SEED], i, PUSHED, n[IMPULSES])) return 0;
	double f = p[FMIN] + (p[FMAX] - p[FMIN]) * uniform(n[SEED], i, STRENGTH);
	return uniform(n[SEED], i, DIRECTION) < 0.5 ? -f : f;
}

static const char *prepare(Instance *m, double x[]) {
	const double *p = m->s.p;
	const int *n = m->s.n;
	int masses = n[MASSES];
	Oscillators *o = oscillators_begin(m, masses);
	o->m = p[M];
	o->c = p[C];
	o->d = p[D];
	o->C = p[C3];
	o->D = p[D3];
	o->ground[0] = n[GROUND_LEFT];
	o->ground[1] = n[GROUND_RIGHT];
	o->B = p[B];
	o->impulse = (Impulse){p[FIRST], p[PERIOD], p[DURATION], p[DELTA]};
	o->rtol = m->s.tolerance > 0 ? m->s.tolerance : p[RTOL];
	o->atol_x = p[ATOLX];
	o->atol_v = p[ATOLV];
	for (int i = 0; i < masses; i++) {
		o->contact[i] = random_pick(n[SEED], n[NUMBER] + i, TOUCHING, n[CONTACTS]) ? p[A] : 0;
		o->pushed[i] = strength(m, n[NUMBER] + i);
	}
	start(m, n[NUMBER], x, x + 1);
	start(m, n[NUMBER] + masses - 1, x + 2, x + 3);
	return oscillators_end(m);
}

static void begin(Instance *m) {
	int masses = m->s.n[MASSES];
	for (int i = 0; i < masses; i++) start(m, m->s.n[NUMBER] + i, m->kept + i, m->kept + masses + i);
	m->kept[2 * masses] = 0;
}

/* The masses beside the coupling masses count with what is kept, which belongs to
 * the same instant as x. */
static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	const Oscillators *o = m->data;
	int n = o->n;
	(void)y;
	oscillators_accelerations(o, m->s.time, m->kept, m->kept + n, u[0], u[1], o->at);
	dx[0] = x[1];
	dx[1] = o->at[0];
	dx[2] = x[3];
	dx[3] = o->at[n - 1];
}

static void jacobian(const Instance *m, const double x[], const double u[], Linear *l) {
	const Oscillators *o = m->data;
	int n = o->n;
	double k[2], d[2];
	(void)x;
	(void)u;
	oscillators_slopes(o, m->kept, m->kept + n, 0, k, d);
	l->A[0][1] = l->A[2][3] = 1;
	l->A[1][0] = -k[0] / o->m;
	l->A[1][1] = -d[0] / o->m;
	if (n == 2) {
		l->A[1][2] = l->A[3][0] = -k[1] / o->m;
		l->A[1][3] = l->A[3][1] = -d[1] / o->m;
	}
	oscillators_slopes(o, m->kept, m->kept + n, n - 1, k, d);
	l->A[3][2] = -k[0] / o->m;
	l->A[3][3] = -d[0] / o->m;
	l->B[1][0] = l->B[3][1] = 1 / o->m;
}

static void step(Instance *m, double h, double x[]) {
	int n = m->s.n[MASSES];
	oscillators_step(m, h);
	x[0] = m->kept[0];
	x[1] = m->kept[n];
	x[2] = m->kept[n - 1];
	x[3] = m->kept[2 * n - 1];
}

const Model model = {
	.data_size = sizeof(Oscillators),
	.prepare = prepare, .evaluate = evaluate, .jacobian = jacobian, .step = step, .extent = extent, .begin = begin,
};
