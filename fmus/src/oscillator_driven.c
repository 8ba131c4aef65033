/* oscillator_driven, oscillator_hub: the side of rodriguez's oscillators that
 * takes the coupling forces: a mass on spring and damper to the ground.
 *
 *     x' = v,   m v' = -S(k, x) - D(c, v) + sum of f
 *
 * with S and D as in oscillator_coupled. FMU_NU, which guid.h defines, is the
 * number of forces. Symplectic Euler.
 */
#include "euler.h"
#include "power_law.h"

enum { M, K, C, X0, V0, NK, NC };
enum { X, V };

static const char *prepare(Instance *m, double x[]) {
	const double *p = m->s.p;
	if (!(p[M] > 0)) return "the mass m must be positive";
	if (!(p[NK] > 0 && p[NC] > 0)) return "the exponents n_k and n_c must be positive";
	x[X] = p[X0];
	x[V] = p[V0];
	return 0;
}

static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	(void)y;
	const double *p = m->s.p;
	double f = u[0];
	for (int i = 1; i < FMU_NU; i++) f += u[i];
	dx[X] = x[V];
	dx[V] = (f - power_law(p[K], p[NK], x[X]) - power_law(p[C], p[NC], x[V])) / p[M];
}

static void jacobian(const Instance *m, const double x[], const double u[], Linear *l) {
	(void)u;
	const double *p = m->s.p;
	l->A[X][V] = 1;
	l->A[V][X] = -power_slope(p[K], p[NK], x[X]) / p[M];
	l->A[V][V] = -power_slope(p[C], p[NC], x[V]) / p[M];
	for (int i = 0; i < FMU_NU; i++) l->B[V][i] = 1 / p[M];
}

const Model model = {
	.prepare = prepare, .evaluate = evaluate, .jacobian = jacobian, .step = symplectic_step,
};
