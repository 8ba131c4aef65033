/* corrector_one: mass 1 of haid's two-mass oscillator, on spring and damper to
 * the ground, driven by the coupling force:
 *
 *     m s'' = -c s - d s' + F      (haid (27), subsystem I)
 */
#include "lti.h"

enum { M, C, D, S0, V0 };

static const char *prepare(Instance *m, double x[]) {
	const double *p = m->s.p;
	if (!(p[M] > 0)) return "the mass m must be positive";
	x[0] = p[S0];
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
