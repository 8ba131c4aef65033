/* oscillator_coupled: the side of rodriguez's oscillators that holds the coupling
 * element: a mass on spring and damper to the ground, joined by another spring
 * and damper to the mass whose displacement and velocity are the inputs.
 *
 *     x' = v,   m v' = -S(k, x) - D(c, v) - f
 *     f = S(k_c, x - x_other) + D(c_c, v - v_other)
 *
 * with S(k, z) = k sgn(z) |z|^n_k and D(c, z) = c sgn(z) |z|^n_c: linear, or as in
 * (22) and (23). f is the force on the other mass. Symplectic Euler; f is read
 * with the inputs of the start of the last micro step (rodriguez 3.1).
 */
#include "euler.h"
#include "power_law.h"

enum { M, K, C, X0, V0, KC, CC, NK, NC };
enum { X, V };
enum { X_OTHER, V_OTHER };

static const char *prepare(Instance *m, double x[]) {
	const double *p = m->s.p;
	if (!(p[M] > 0)) return "the mass m must be positive";
	if (!(p[NK] > 0 && p[NC] > 0)) return "the exponents n_k and n_c must be positive";
	x[X] = p[X0];
	x[V] = p[V0];
	return 0;
}

static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	const double *p = m->s.p;
	y[0] = power_law(p[KC], p[NK], x[X] - u[X_OTHER]) + power_law(p[CC], p[NC], x[V] - u[V_OTHER]);
	dx[X] = x[V];
	dx[V] = (-power_law(p[K], p[NK], x[X]) - power_law(p[C], p[NC], x[V]) - y[0]) / p[M];
}

static void jacobian(const Instance *m, const double x[], const double u[], Linear *l) {
	const double *p = m->s.p;
	l->C[0][X] = power_slope(p[KC], p[NK], x[X] - u[X_OTHER]);
	l->C[0][V] = power_slope(p[CC], p[NC], x[V] - u[V_OTHER]);
	l->D[0][X_OTHER] = -l->C[0][X];
	l->D[0][V_OTHER] = -l->C[0][V];
	l->A[X][V] = 1;
	l->A[V][X] = -(power_slope(p[K], p[NK], x[X]) + l->C[0][X]) / p[M];
	l->A[V][V] = -(power_slope(p[C], p[NC], x[V]) + l->C[0][V]) / p[M];
	l->B[V][X_OTHER] = l->C[0][X] / p[M];
	l->B[V][V_OTHER] = l->C[0][V] / p[M];
}

const Model model = {
	.prepare = prepare, .evaluate = evaluate, .jacobian = jacobian, .step = symplectic_step, .sampled = last_micro_step,
};
