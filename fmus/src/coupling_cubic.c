/* coupling_cubic: the nonlinear spring and damper between two masses, without
 * any state:
 *
 *     F = c_c s + d_c r + C_c s^3 + D_c r^3,   s = x2 - x1,  r = v2 - v1   (meyer (35c), (38))
 */
#include "fmu.h"

enum { CC, DC, C3, D3 };

static const char *prepare(Instance *m, double x[]) {
	(void)m;
	(void)x;
	return 0;
}

static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	const double *p = m->s.p, s = u[2] - u[0], r = u[3] - u[1];
	(void)x;
	(void)dx;
	y[0] = s * (p[CC] + p[C3] * s * s) + r * (p[DC] + p[D3] * r * r);
}

static void jacobian(const Instance *m, const double x[], const double u[], Linear *l) {
	const double *p = m->s.p, s = u[2] - u[0], r = u[3] - u[1];
	(void)x;
	l->D[0][2] = p[CC] + 3 * p[C3] * s * s;
	l->D[0][3] = p[DC] + 3 * p[D3] * r * r;
	l->D[0][0] = -l->D[0][2];
	l->D[0][1] = -l->D[0][3];
}

static void step(Instance *m, double h, double x[]) {
	(void)m;
	(void)h;
	(void)x;
}

const Model model = {
	.prepare = prepare, .evaluate = evaluate, .jacobian = jacobian, .step = step,
};
