/* quarter_chassis_a: the chassis of the quarter car, reticulation A: a free
 * mass under the force of the suspension, integrated exactly.
 *
 *     m_c z_c'' = -F_c      (sadjina (18a), (20a))
 */
#include "lti.h"

static const char *prepare(Instance *m, double x[]) {
	(void)x;
	if (!(m->s.p[0] > 0)) return "the mass m_c must be positive";
	Linear *l = lti_begin(m);
	l->A[0][1] = 1;
	l->B[1][0] = -1 / m->s.p[0];
	lti_end(m);
	return 0;
}

const Model model = {sizeof(Lti), prepare, lti_evaluate, lti_jacobian, lti_step};
