/* mass_displacement: one mass of the two-mass oscillator, on a spring and
 * damper to the ground and on the coupling spring and damper, whose other end
 * is moved:
 *
 *     m x'' = -c x - d x' + c_c (x_other - x) + d_c (v_other - x')      (schweizer (4), (25b))
 */
#include "lti.h"

enum { M, C, D, X0, V0, CC, DC };

static const char *prepare(Instance *m, double x[]) {
	const double *p = m->s.p;
	if (!(p[M] > 0)) return "the mass m must be positive";
	x[0] = p[X0];
	x[1] = p[V0];
	Linear *l = lti_begin(m);
	l->A[0][1] = 1;
	l->A[1][0] = -(p[C] + p[CC]) / p[M];
	l->A[1][1] = -(p[D] + p[DC]) / p[M];
	l->B[1][0] = p[CC] / p[M];
	l->B[1][1] = p[DC] / p[M];
	lti_end(m);
	return 0;
}

const Model model = {sizeof(Lti), prepare, lti_evaluate, lti_jacobian, lti_step};
