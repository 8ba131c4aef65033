/* linear: a state space given by parameters, integrated exactly for polynomial
 * inputs. blackbox is the same model compiled with FMU_PLAIN. */
#include "lti.h"

enum { NX = 8, NU = 4, NY = 4 };
enum { A = 0, B = A + NX * NX, C = B + NX * NU, D = C + NY * NX, X0 = D + NY * NU, NP = X0 + NX };

static const Reals reals[] = {
	{INPUT, 0, NU, 0},
	{STATE, 0, NX, 0},
	{DERIVATIVE, 0, NX, 0},
	{CALCULATED, 0, NY, 0},
	{PARAMETER, 0, NP, 0}, /* A, B, C, D row by row, then x0 */
};

static const char *prepare(Instance *m, double x[]) {
	const double *p = m->s.p;
	Linear *l = lti_begin(m);
	for (int i = 0; i < NX; i++) {
		x[i] = p[X0 + i];
		for (int j = 0; j < NX; j++) l->A[i][j] = p[A + i * NX + j];
		for (int j = 0; j < NU; j++) l->B[i][j] = p[B + i * NU + j];
	}
	for (int i = 0; i < NY; i++) {
		for (int j = 0; j < NX; j++) l->C[i][j] = p[C + i * NX + j];
		for (int j = 0; j < NU; j++) l->D[i][j] = p[D + i * NU + j];
	}
	lti_end(m);
	return 0;
}

const Model model = {reals, sizeof reals / sizeof reals[0], 0, 0, NX, NU, NY, MAX_ORDER, sizeof(Lti),
                     prepare, lti_evaluate, lti_jacobian, lti_step};
