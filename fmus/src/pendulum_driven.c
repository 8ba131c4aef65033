/* pendulum_driven: the second of rodriguez's coupled pendula (4.3), under a force
 * at its tip; see pendulum.h. Symplectic Euler. */
#include "differences.h"
#include "euler.h"
#include "pendulum.h"

static const Reals reals[] = {
	{INPUT, 0, 2, 0},             /* f_x, f_y */
	{STATE, X, 4, 0},             /* x, y, v_x, v_y */
	{DERIVATIVE, V_X, 2, 0},      /* der(v_x), der(v_y) */
	{PARAMETER, M, 1, 1},         /* m */
	{PARAMETER, L, 1, 2},         /* l */
	{PARAMETER, X_PIN, 1, 10.5},  /* x_pin */
	{PARAMETER, THETA0, 1, -0.17453292519943295}, /* theta0 */
	{PARAMETER, G, 1, 9.81},      /* g */
	{PARAMETER, ALPHA, 1, 1e7},   /* alpha */
	{PARAMETER, XI, 1, 1},        /* xi */
	{PARAMETER, OMEGA, 1, 10},    /* omega */
};
static const Integers integers[] = {{1, 1}}; /* micro_steps */

static const char *prepare(Instance *m, double x[]) { return pendulum_start(m->s.p, x); }

static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	(void)y;
	pendulum_right(m->s.p, x, u, dx);
}

const Model model = {
	.reals = reals, .n_reals = sizeof reals / sizeof reals[0],
	.integers = integers, .n_integers = sizeof integers / sizeof integers[0],
	.nx = 4, .nu = 2, .output_order = 1,
	.prepare = prepare, .evaluate = evaluate, .jacobian = difference_jacobian, .step = symplectic_step,
};
