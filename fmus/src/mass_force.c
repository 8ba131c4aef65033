/* mass_force: one mass of the two-mass oscillator, on a spring and damper to
 * the ground, driven by a force:
 *
 *     m x'' = -c x - d x' + F      (schweizer (4), (7))
 */
#include "lti.h"

enum { M, C, D, X0, V0 };

static const char *prepare(Instance *m, double x[]) {
	const double *p = m->s.p;
	if (!(p[M] > 0)) return "the mass m must be positive";
	x[0] = p[X0];
	x[1] = p[V0];
	Linear *l = lti_begin(m);
	l->A[0][1] = 1;
	l->A[1][0] = -p[C] / p[M];
	l->A[1][1] = -p[D] / p[M];
	l->B[1][0] = 1 / p[M];
	lti_end(m);
	return 0;
}

const Model model = {sizeof(Lti), prepare, lti_evaluate, lti_jacobian, lti_step};
