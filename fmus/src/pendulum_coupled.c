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
	.prepare = prepare, .evaluate = evaluate, .jacobian = difference_jacobian, .step = symplectic_step,
	.sampled = last_micro_step,
};
