/* crane_hydraulics: cylinder and valve of rodriguez's hydraulic crane (4.4),
 * equations (25) to (33), driven by length s_c and rate v_c of the cylinder.
 *
 *     f = a_p (p2 - p1) - c v_c
 *     p1' = beta(p1) / (a_p l4) (a_p v_c + q(a_i, p_P - p1) - q(a_o, p1 - p_T))
 *     p2' = beta(p2) / (a_p l5) (-a_p v_c + q(a_o, p_P - p2) - q(a_i, p2 - p_T))
 *     l4 = l3/2 + s_0 - s_c,   l5 = l3/2 + s_c - s_0
 *     q(A, dp) = A c_d sqrt(2 dp / rho), 0 for dp < 0;   a_i = a_v gamma,   a_o = a_v (1 - gamma)
 *     beta(p) = (1 + a p + b p^2) / (a + 2 b p)
 *
 * The spool gamma follows (33) in time. The pressures start where the valve holds
 * them with the cylinder at rest: p1 = (gamma0^2 p_P + (1-gamma0)^2 p_T) /
 * (gamma0^2 + (1-gamma0)^2), and p2 with gamma0 and 1-gamma0 exchanged.
 * Forward Euler; f is read with the inputs of the start of the last micro step
 * (rodriguez 3.1). A step in which the piston meets an end of the cylinder is
 * discarded.
 */
#include "differences.h"
#include "euler.h"

#include <math.h>

enum { A_P, L3, S_0, C, C_D, A_V, RHO, A, B, P_T, P_P, GAMMA0, AMPLITUDE, FREQUENCY };
enum { P1, P2 };
enum { S_C, V_C };

static const char *prepare(Instance *m, double x[]) {
	const double *p = m->s.p;
	if (!(p[A_P] > 0 && p[L3] > 0 && p[RHO] > 0)) return "the piston's area a_p, the cylinder's length l3 and the density rho must be positive";
	if (!(p[P_P] > p[P_T])) return "the pressure p_P of the pump must be above p_T of the tank";
	double in = p[GAMMA0] * p[GAMMA0], out = (1 - p[GAMMA0]) * (1 - p[GAMMA0]);
	x[P1] = (in * p[P_P] + out * p[P_T]) / (in + out);
	x[P2] = (out * p[P_P] + in * p[P_T]) / (in + out);
	return 0;
}

/* spool gives (33) at time t. */
static double spool(const double p[], double t) {
	const double turn = 6.283185307179586;
	double share = t < 1 ? t : t < 8 ? 1 : t < 9 ? 9 - t : 0;
	return p[GAMMA0] * (1 - p[AMPLITUDE] * share * sin(turn * p[FREQUENCY] * t));
}

static double flow(const double p[], double area, double dp) {
	return dp > 0 ? area * p[C_D] * sqrt(2 * dp / p[RHO]) : 0;
}

static double bulk(const double p[], double pressure) {
	return (1 + p[A] * pressure + p[B] * pressure * pressure) / (p[A] + 2 * p[B] * pressure);
}

static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	const double *p = m->s.p;
	double gamma = spool(p, m->s.time);
	double in = p[A_V] * gamma, out = p[A_V] * (1 - gamma);
	double l4 = p[L3] / 2 + p[S_0] - u[S_C], l5 = p[L3] / 2 + u[S_C] - p[S_0];
	dx[P1] = bulk(p, x[P1]) / (p[A_P] * l4) *
	         (p[A_P] * u[V_C] + flow(p, in, p[P_P] - x[P1]) - flow(p, out, x[P1] - p[P_T]));
	dx[P2] = bulk(p, x[P2]) / (p[A_P] * l5) *
	         (-p[A_P] * u[V_C] + flow(p, out, p[P_P] - x[P2]) - flow(p, in, x[P2] - p[P_T]));
	y[0] = p[A_P] * (x[P2] - x[P1]) - p[C] * u[V_C];
	y[1] = gamma;
}

static void step(Instance *m, double h, double x[]) {
	const double *p = m->s.p;
	int n = m->s.n[0];
	double start = m->s.time, micro = h / n, u[MAX_INPUTS], dx[MAX_STATES], y[MAX_OUTPUTS];
	for (int k = 0; k < n; k++) {
		polynomial(m->s.u, m->s.order, k * micro, u);
		if (!(fabs(u[S_C] - p[S_0]) < p[L3] / 2)) {
			m->refused = "the piston meets the end of the cylinder: s_c is not within s_0 +- l3/2";
			return;
		}
		m->s.time = start + k * micro; /* of the spool */
		model.evaluate(m, x, u, dx, y);
		x[P1] += micro * dx[P1];
		x[P2] += micro * dx[P2];
	}
}

const Model model = {
	.prepare = prepare, .evaluate = evaluate, .jacobian = difference_jacobian, .step = step,
	.sampled = last_micro_step,
};
