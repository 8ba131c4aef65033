#include "differences.h"

#include <math.h>
#include <string.h>

/* sides evaluates on both sides of *v, which points into x or u, and gives the
 * distance between them. 6e-6 is the cube root of the machine epsilon. */
static double sides(const Instance *m, const double x[], const double u[], double *v, double dx[2][MAX_STATES],
                    double y[2][MAX_OUTPUTS]) {
	double at = *v, h = 6e-6 * fmax(fabs(at), 1), lower = at - h, upper = at + h;
	*v = lower;
	model.evaluate(m, x, u, dx[0], y[0]);
	*v = upper;
	model.evaluate(m, x, u, dx[1], y[1]);
	*v = at;
	return upper - lower;
}

void difference_jacobian(const Instance *m, const double x[], const double u[], Linear *l) {
	double xs[MAX_STATES], us[MAX_INPUTS], dx[2][MAX_STATES], y[2][MAX_OUTPUTS];
	memcpy(xs, x, (size_t)FMU_NX * sizeof *x);
	memcpy(us, u, (size_t)FMU_NU * sizeof *u);
	for (int j = 0; j < FMU_NX; j++) {
		double d = sides(m, xs, us, &xs[j], dx, y);
		for (int i = 0; i < FMU_NX; i++) l->A[i][j] = (dx[1][i] - dx[0][i]) / d;
		for (int i = 0; i < FMU_NY; i++) l->C[i][j] = (y[1][i] - y[0][i]) / d;
	}
	for (int j = 0; j < FMU_NU; j++) {
		double d = sides(m, xs, us, &us[j], dx, y);
		for (int i = 0; i < FMU_NX; i++) l->B[i][j] = (dx[1][i] - dx[0][i]) / d;
		for (int i = 0; i < FMU_NY; i++) l->D[i][j] = (y[1][i] - y[0][i]) / d;
	}
}
