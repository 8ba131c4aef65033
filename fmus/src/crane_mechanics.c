/* crane_mechanics: the two links of rodriguez's hydraulic crane (4.4) under the
 * force of the cylinder. Link 1, uniform, turns about A at the origin and ends in
 * Q with the point mass m2; link 2, without mass, hangs there and ends in P with
 * the point mass m3. theta1 and theta2 are angles to the x axis, gravity acts
 * along -y. The cylinder joins B = (x_B, y_B) with link 1 at the distance l_c
 * from A; s_c is its length, f pushes it apart. With d = theta1 - theta2
 *
 *     (m1/3 + m2 + m3) l1^2 w1' + m3 l1 l2 (cos d w2' + sin d w2^2)
 *         = f ds_c/dtheta1 - (m1/2 + m2 + m3) g l1 cos theta1
 *     m3 l1 l2 (cos d w1' - sin d w1^2) + m3 l2^2 w2' = -m3 g l2 cos theta2
 *
 * Symplectic Euler.
 */
#include "differences.h"
#include "euler.h"

#include <math.h>

enum { L1, L2, M1, M2, M3, L_C, X_B, Y_B, THETA1, THETA2, G };
enum { T1, T2, W1, W2 };

static const char *prepare(Instance *m, double x[]) {
	const double *p = m->s.p;
	if (!(p[L1] > 0 && p[L2] > 0)) return "the lengths l1 and l2 must be positive";
	if (!(p[M1] > 0 && p[M3] > 0)) return "the masses m1 and m3 must be positive";
	if (!(p[M2] >= 0)) return "the mass m2 must not be negative";
	if (p[L_C] == 0 || (p[X_B] == 0 && p[Y_B] == 0)) return "the cylinder has no lever arm: l_c, or x_B and y_B, are 0";
	x[T1] = p[THETA1];
	x[T2] = p[THETA2];
	return 0;
}

static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	const double *p = m->s.p;
	double c1 = cos(x[T1]), s1 = sin(x[T1]), c = cos(x[T1] - x[T2]), s = sin(x[T1] - x[T2]);
	double bx = p[L_C] * c1 - p[X_B], by = p[L_C] * s1 - p[Y_B];
	double length = sqrt(bx * bx + by * by);
	double arm = p[L_C] * (by * c1 - bx * s1) / length; /* ds_c/dtheta1 */
	double a11 = (p[M1] / 3 + p[M2] + p[M3]) * p[L1] * p[L1];
	double a12 = p[M3] * p[L1] * p[L2] * c, a22 = p[M3] * p[L2] * p[L2];
	double gyro = p[M3] * p[L1] * p[L2] * s;
	double b1 = u[0] * arm - (p[M1] / 2 + p[M2] + p[M3]) * p[G] * p[L1] * c1 - gyro * x[W2] * x[W2];
	double b2 = gyro * x[W1] * x[W1] - p[M3] * p[G] * p[L2] * cos(x[T2]);
	double det = a11 * a22 - a12 * a12;
	dx[T1] = x[W1];
	dx[T2] = x[W2];
	dx[W1] = (a22 * b1 - a12 * b2) / det;
	dx[W2] = (a11 * b2 - a12 * b1) / det;
	y[0] = length;
	y[1] = arm * x[W1];
}

const Model model = {
	.prepare = prepare, .evaluate = evaluate, .jacobian = difference_jacobian, .step = symplectic_step,
};
