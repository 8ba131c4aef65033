/* quarter_chassis_b: chassis and suspension of the quarter car, reticulation B,
 * driven by the velocity of the wheel:
 *
 *     z_c' = v_c,   m_c v_c' = -F_c,   z_w' = v_w,
 *     F_c = k_c (z_c - z_w) + d_c sign(v_c - v_w) |v_c - v_w|^(2/(1+2 n_d))
 *
 * (sadjina (18a), (18c), (21a)). The displacement of the wheel is a state here:
 * it starts at 0 and integrates the input.
 */
#include "euler.h"

enum { MC, KC, DC, ND };
enum { ZC, VC, ZW };

static const char *prepare(Instance *m, double x[]) {
	(void)x;
	if (!(m->s.p[MC] > 0)) return "the mass m_c must be positive";
	if (!(m->s.p[ND] >= 0)) return "the exponent n_d must not be negative";
	return 0;
}

static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	const double *p = m->s.p;
	y[0] = suspension(p[KC], p[DC], p[ND], x[ZC] - x[ZW], x[VC] - u[0]);
	dx[ZC] = x[VC];
	dx[VC] = -y[0] / p[MC];
	dx[ZW] = u[0];
}

static void jacobian(const Instance *m, const double x[], const double u[], Linear *l) {
	const double *p = m->s.p;
	double s = suspension_slope(p[DC], p[ND], x[VC] - u[0]);
	l->C[0][ZC] = p[KC];
	l->C[0][VC] = s;
	l->C[0][ZW] = -p[KC];
	l->D[0][0] = -s;
	l->A[ZC][VC] = 1;
	for (int j = 0; j < 3; j++) l->A[VC][j] = -l->C[0][j] / p[MC];
	l->B[VC][0] = s / p[MC];
	l->B[ZW][0] = 1;
}

const Model model = {0, prepare, evaluate, jacobian, euler_step};
