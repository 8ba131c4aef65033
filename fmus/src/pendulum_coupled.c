/* pendulum_coupled: the first of rodriguez's coupled pendula (4.3), see
 * pendulum.h, with the spring and damper between the tips; the motion of the
 * other tip is the input. With d from this tip to the other, e = d/|d|:
 *
 *     f = -(k_c (|d| - l_c) + c_c e.d') e
 *
 * is the force on the other tip, 0 where the tips meet. Symplectic Euler; f is
 * read with the inputs of the start of the last micro step (rodriguez 3.1).
 */
#include "differences.h"
#include "euler.h"
#include "pendulum.h"

#include <math.h>

enum { K_C = PENDULUM_PARAMETERS, C_C, L_C };

static const Reals reals[] = {
	{INPUT, 0, 4, 0},             /* x_other, y_other, v_x_other, v_y_other */
	{STATE, X, 4, 0},             /* x, y, v_x, v_y */
	{DERIVATIVE, V_X, 2, 0},      /* der(v_x), der(v_y) */
	{CALCULATED, 0, 2, 0},        /* f_x, f_y */
	{PARAMETER, M, 1, 5},         /* m */
	{PARAMETER, L, 1, 2},         /* l */
	{PARAMETER, X_PIN, 1, 0},     /* x_pin */
	{PARAMETER, THETA0, 1, 0.7853981633974483}, /* theta0 */
	{PARAMETER, G, 1, 9.81},      /* g */
	{PARAMETER, ALPHA, 1, 1e7},   /* alpha */
	{PARAMETER, XI, 1, 1},        /* xi */
	{PARAMETER, OMEGA, 1, 10},    /* omega */
	{PARAMETER, K_C, 1, 100},     /* k_c */
	{PARAMETER, C_C, 1, 0},       /* c_c */
	{PARAMETER, L_C, 1, 8.75612244303068}, /* l_c */
};
static const Integers integers[] = {{1, 1}}; /* micro_steps */

static const char *prepare(Instance *m, double x[]) { return pendulum_start(m->s.p, x); }

static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	const double *p = m->s.p;
	double d_x = u[X] - x[X], d_y = u[Y] - x[Y], length = sqrt(d_x * d_x + d_y * d_y);
	double pull[2] = {0, 0};
	if (length > 0) {
		double rate = (d_x * (u[V_X] - x[V_X]) + d_y * (u[V_Y] - x[V_Y])) / length;
		double tension = (p[K_C] * (length - p[L_C]) + p[C_C] * rate) / length;
		pull[0] = tension * d_x;
		pull[1] = tension * d_y;
	}
	pendulum_right(p, x, pull, dx);
	y[0] = -pull[0];
	y[1] = -pull[1];
}

const Model model = {
	.reals = reals, .n_reals = sizeof reals / sizeof reals[0],
	.integers = integers, .n_integers = sizeof integers / sizeof integers[0],
	.nx = 4, .nu = 4, .ny = 2, .output_order = 1,
	.prepare = prepare, .evaluate = evaluate, .jacobian = difference_jacobian, .step = symplectic_step,
	.sampled = last_micro_step,
};
