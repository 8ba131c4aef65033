/* coupling: the spring and damper between the masses of the two-mass
 * oscillator, without any state:
 *
 *     F = c_c (x2 - x1) + d_c (v2 - v1)      (schweizer 2.1.1)
 */
#include "lti.h"

enum { CC, DC };

static const char *prepare(Instance *m, double x[]) {
	const double *p = m->s.p;
	(void)x;
	Linear *l = lti_begin(m);
	l->D[0][0] = -p[CC];
	l->D[0][1] = -p[DC];
	l->D[0][2] = p[CC];
	l->D[0][3] = p[DC];
	lti_end(m);
	return 0;
}

const Model model = {sizeof(Lti), prepare, lti_evaluate, lti_jacobian, lti_step};
