/* quarter_wheel_b: the wheel of the quarter car, reticulation B, under the force
 * of the suspension:
 *
 *     z_w' = v_w,   m_w v_w' = -k_w (z_w - z_road) + F_c      (sadjina (18b), (18d), (21b))
 */
#include "euler.h"

enum { MW, KW, ZROAD };

static const char *prepare(Instance *m, double x[]) {
	(void)x;
	return m->s.p[MW] > 0 ? 0 : "the mass m_w must be positive";
}

static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	const double *p = m->s.p;
	(void)y;
	dx[0] = x[1];
	dx[1] = (u[0] - p[KW] * (x[0] - p[ZROAD])) / p[MW];
}

static void jacobian(const Instance *m, const double x[], const double u[], Linear *l) {
	const double *p = m->s.p;
	(void)x;
	(void)u;
	l->A[0][1] = 1;
	l->A[1][0] = -p[KW] / p[MW];
	l->B[1][0] = 1 / p[MW];
}

const Model model = {0, prepare, evaluate, jacobian, euler_step};
