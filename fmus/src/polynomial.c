/* polynomial: a nonlinear function without any state,
 *
 *     y = a + b u + c u^2 + d u^3
 *
 * for algebraic loops whose solutions are known.
 */
#include "fmu.h"

enum { A, B, C, D };

static const char *prepare(Instance *m, double x[]) {
	(void)m;
	(void)x;
	return 0;
}

static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	const double *p = m->s.p;
	(void)x;
	(void)dx;
	y[0] = p[A] + u[0] * (p[B] + u[0] * (p[C] + u[0] * p[D]));
}

static void jacobian(const Instance *m, const double x[], const double u[], Linear *l) {
	const double *p = m->s.p;
	(void)x;
	l->D[0][0] = p[B] + u[0] * (2 * p[C] + u[0] * 3 * p[D]);
}

static void step(Instance *m, double h, double x[]) {
	(void)m;
	(void)h;
	(void)x;
}

const Model model = {0, prepare, evaluate, jacobian, step};
