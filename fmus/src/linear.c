/* linear: a state space given by parameters, integrated exactly for polynomial
 * inputs. blackbox is the same model compiled with FMU_PLAIN. */
#include "lti.h"

enum { NX = FMU_NX, NU = FMU_NU, NY = FMU_NY };
enum { A = 0, B = A + NX * NX, C = B + NX * NU, D = C + NY * NX, X0 = D + NY * NU, NP = X0 + NX };

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

const Model model = {sizeof(Lti), prepare, lti_evaluate, lti_jacobian, lti_step};
