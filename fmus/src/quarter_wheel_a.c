/* quarter_wheel_a: wheel and suspension of the quarter car, reticulation A,
 * driven by the velocity of the chassis:
 *
 *     z_c' = v_c,   z_w' = v_w,   m_w v_w' = -k_w (z_w - z_road) + F_c,
 *     F_c = k_c (z_c - z_w) + d_c sign(v_c - v_w) |v_c - v_w|^(2/(1+2 n_d))
 *
 * (sadjina (18b)-(18d), (20b)). The displacement of the chassis is a state here:
 * it starts at 0 and integrates the input.
 */
#include "euler.h"

enum { MW, KW, ZROAD, KC, DC, ND };
enum { ZW, VW, ZC };

static const char *prepare(Instance *m, double x[]) {
	(void)x;
	if (!(m->s.p[MW] > 0)) return "the mass m_w must be positive";
	if (!(m->s.p[ND] >= 0)) return "the exponent n_d must not be negative";
	return 0;
}

static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	const double *p = m->s.p;
	y[0] = suspension(p[KC], p[DC], p[ND], x[ZC] - x[ZW], u[0] - x[VW]);
	dx[ZW] = x[VW];
	dx[VW] = (y[0] - p[KW] * (x[ZW] - p[ZROAD])) / p[MW];
	dx[ZC] = u[0];
}

static void jacobian(const Instance *m, const double x[], const double u[], Linear *l) {
	const double *p = m->s.p;
	double s = suspension_slope(p[DC], p[ND], u[0] - x[VW]);
	l->C[0][ZW] = -p[KC];
	l->C[0][VW] = -s;
	l->C[0][ZC] = p[KC];
	l->D[0][0] = s;
	l->A[ZW][VW] = 1;
	l->A[VW][ZW] = -(p[KC] + p[KW]) / p[MW];
	l->A[VW][VW] = -s / p[MW];
	l->A[VW][ZC] = p[KC] / p[MW];
	l->B[VW][0] = s / p[MW];
	l->B[ZC][0] = 1;
}

const Model model = {0, prepare, evaluate, jacobian, euler_step};
