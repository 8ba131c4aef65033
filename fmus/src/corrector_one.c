/* corrector_one: mass 1 of haid's two-mass oscillator, on spring and damper to
 * the ground, driven by the coupling force:
 *
 *     m s'' = -c s - d s' + F      (haid (27), subsystem I)
 */
#include "lti.h"

enum { M, C, D, S0, V0 };

static const Reals reals[] = {
	{INPUT, 0, 1, 0},       /* F */
	{STATE, 0, 2, 0},       /* s, v */
	{DERIVATIVE, 1, 1, 0},  /* der(v) */
	{PARAMETER, M, 1, 10},  /* m */
	{PARAMETER, C, 1, 1e6}, /* c */
	{PARAMETER, D, 1, 1},   /* d */
	{PARAMETER, S0, 1, 0},  /* s0 */
	{PARAMETER, V0, 1, 1},  /* v0 */
};

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

const Model model = {reals, sizeof reals / sizeof reals[0], 0, 0, 2, 1, 0, MAX_ORDER, sizeof(Lti),
                     prepare, lti_evaluate, lti_jacobian, lti_step};
