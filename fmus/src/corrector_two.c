/* corrector_two: mass 2 of haid's two-mass oscillator, on spring and damper to the
 * ground, with the coupling spring and damper, whose other end is moved:
 *
 *     F = c_k (s - s_other) + d(w) w,   w = v - v_other,
 *     m s'' = -c s - d s' - F                             (haid (27), subsystem II)
 *
 * d(w) = d_k if n_d = 1; then the system is linear and integrated exactly. Else
 *
 *     d(w) = max(min(d_k |w|^(n_d - 1), d_max), d_min)    (43)
 *
 * and it is integrated by the method of Dormand and Prince, of order 5 with an
 * error estimate of order 4 (Hairer, Noersett, Wanner, Solving Ordinary
 * Differential Equations I, table II.5.2), to a relative tolerance of 1e-11. */
#include "lti.h"

#include <math.h>
#include <string.h>

enum { M, C, D, S0, V0, CK, DK, ND, DMIN, DMAX };

static const char *prepare(Instance *m, double x[]) {
	const double *p = m->s.p;
	if (!(p[M] > 0)) return "the mass m must be positive";
	if (!(p[ND] >= 1)) return "the exponent n_d must be at least 1";
	if (!(p[DMIN] >= 0 && p[DMAX] >= p[DMIN])) return "d_min must not be negative nor greater than d_max";
	x[0] = p[S0];
	x[1] = p[V0];
	Linear *l = lti_begin(m);
	l->A[0][1] = 1;
	l->A[1][0] = -(p[C] + p[CK]) / p[M];
	l->A[1][1] = -(p[D] + p[DK]) / p[M];
	l->B[1][0] = p[CK] / p[M];
	l->B[1][1] = p[DK] / p[M];
	l->C[0][0] = p[CK];
	l->C[0][1] = p[DK];
	l->D[0][0] = -p[CK];
	l->D[0][1] = -p[DK];
	lti_end(m);
	return 0;
}

/* damping gives d(w) w and its derivative by w. */
static double damping(const double p[], double w, double *slope) {
	double a = fabs(w), d = p[DK] * pow(a, p[ND] - 1);
	*slope = p[ND] * d;
	if (d > p[DMAX]) d = *slope = p[DMAX];
	if (d < p[DMIN]) d = *slope = p[DMIN];
	return d * w;
}

static void evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	const double *p = m->s.p;
	double slope;
	if (p[ND] == 1) {
		lti_evaluate(m, x, u, dx, y);
		return;
	}
	y[0] = p[CK] * (x[0] - u[0]) + damping(p, x[1] - u[1], &slope);
	dx[0] = x[1];
	dx[1] = (-p[C] * x[0] - p[D] * x[1] - y[0]) / p[M];
}

static void jacobian(const Instance *m, const double x[], const double u[], Linear *l) {
	const double *p = m->s.p;
	double slope;
	if (p[ND] == 1) {
		lti_jacobian(m, x, u, l);
		return;
	}
	damping(p, x[1] - u[1], &slope);
	l->A[0][1] = 1;
	l->A[1][0] = -(p[C] + p[CK]) / p[M];
	l->A[1][1] = -(p[D] + slope) / p[M];
	l->B[1][0] = p[CK] / p[M];
	l->B[1][1] = slope / p[M];
	l->C[0][0] = p[CK];
	l->C[0][1] = slope;
	l->D[0][0] = -p[CK];
	l->D[0][1] = -slope;
}

enum { STAGES = 7 };
static const double node[STAGES] = {0, 1. / 5, 3. / 10, 4. / 5, 8. / 9, 1, 1};
static const double weight[STAGES][STAGES - 1] = {
	{0},
	{1. / 5},
	{3. / 40, 9. / 40},
	{44. / 45, -56. / 15, 32. / 9},
	{19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
	{9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
	{35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84},
};
static const double error[STAGES] = {71. / 57600, 0, -71. / 16695, 71. / 1920, -17253. / 339200, 22. / 525, -1. / 40};

enum { MOST_STEPS = 1000000 };

static void step(Instance *m, double h, double x[]) {
	static const double rtol = 1e-11, atol[2] = {1e-16, 1e-13};
	double k[STAGES][2], u[MAX_INPUTS], y[1], at[2], done = 0, micro = fmin(h, 1e-5);
	if (m->s.p[ND] == 1) {
		lti_step(m, h, x);
		return;
	}
	for (int n = 0; done < h; n++) {
		if (n == MOST_STEPS) {
			m->refused = "the step needs too many steps of the integrator";
			return;
		}
		int last = !(done + micro < h);
		double size = last ? h - done : micro, norm = 0;
		for (int i = 0; i < STAGES; i++) {
			memcpy(at, x, sizeof at);
			for (int j = 0; j < i; j++)
				for (int q = 0; q < 2; q++) at[q] += size * weight[i][j] * k[j][q];
			polynomial(m->s.u, m->s.order, done + node[i] * size, u);
			evaluate(m, at, u, k[i], y);
		}
		for (int q = 0; q < 2; q++) {
			double e = 0;
			for (int i = 0; i < STAGES; i++) e += error[i] * k[i][q];
			norm = fmax(norm, fabs(size * e) / (atol[q] + rtol * fmax(fabs(x[q]), fabs(at[q]))));
		}
		if (!isfinite(norm)) { /* shows in the outputs */
			x[0] = x[1] = NAN;
			return;
		}
		if (norm <= 1) {
			memcpy(x, at, sizeof at);
			done = last ? h : done + size;
		}
		micro = size * fmin(5, fmax(0.2, 0.9 * pow(fmax(norm, 1e-10), -0.2)));
	}
}

const Model model = {sizeof(Lti), prepare, evaluate, jacobian, step};
