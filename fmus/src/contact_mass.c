/* contact_mass: one mass of the nonlinear two-mass oscillator, on a spring and
 * damper to the ground and before a penalty contact, driven by the coupling force:
 *
 *     m x'' = -c x - d x' + A e^(B x) + F      (meyer (35a), (35b) with A = 0)
 */
#include "oscillators.h"

enum { M, C, D, A, B, X0, V0, RTOL, ATOLX, ATOLV };

static const char *extent(const Instance *m, size_t *kept, size_t *scratch) {
	(void)m;
	oscillators_extent(1, kept, scratch);
	return 0;
}

static const char *prepare(Instance *m, double x[]) {
	const double *p = m->s.p;
	Oscillators *o = oscillators_begin(m, 1);
	o->m = p[M];
	o->c = p[C];
	o->d = p[D];
	o->ground[0] = 1;
	o->contact[0] = p[A];
	o->B = p[B];
	o->rtol = m->s.tolerance > 0 ? m->s.tolerance : p[RTOL];
	o->atol_x = p[ATOLX];
	o->atol_v = p[ATOLV];
	x[0] = p[X0];
	x[1] = p[V0];
	return oscillators_end(m);
}

static void begin(Instance *m) {
	m->kept[0] = m->s.x[0];
	m->kept[1] = m->s.x[1];
	m->kept[2] = 0;
}

static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	(void)y;
	dx[0] = x[1];
	oscillators_accelerations(m->data, m->s.time, x, x + 1, u[0], 0, dx + 1);
}

static void jacobian(const Instance *m, const double x[], const double u[], Linear *l) {
	const Oscillators *o = m->data;
	double k[2], d[2];
	(void)u;
	oscillators_slopes(o, x, x + 1, 0, k, d);
	l->A[0][1] = 1;
	l->A[1][0] = -k[0] / o->m;
	l->A[1][1] = -d[0] / o->m;
	l->B[1][0] = 1 / o->m;
}

static void step(Instance *m, double h, double x[]) {
	oscillators_step(m, h);
	x[0] = m->kept[0];
	x[1] = m->kept[1];
}

const Model model = {
	.data_size = sizeof(Oscillators), .prepare = prepare, .evaluate = evaluate, .jacobian = jacobian, .step = step,
	.extent = extent, .begin = begin,
};
