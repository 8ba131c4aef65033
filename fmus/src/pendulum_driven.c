/* pendulum_driven: the second of rodriguez's coupled pendula (4.3), under a force
 * at its tip; see pendulum.h. Symplectic Euler. */
#include "differences.h"
#include "euler.h"
#include "pendulum.h"

static const char *prepare(Instance *m, double x[]) { return pendulum_start(m->s.p, x); }

static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	(void)y;
	pendulum_right(m->s.p, x, u, dx);
}

const Model model = {
	.prepare = prepare, .evaluate = evaluate, .jacobian = difference_jacobian, .step = symplectic_step,
};
