#include "lti.h"

#include <math.h>
#include <string.h>

/* multiply computes c = a b for n x n matrices, row by row. */
static void multiply(int n, const double *a, const double *b, double *c) {
	memset(c, 0, sizeof *c * (size_t)(n * n));
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++) {
			double f = a[i * n + k];
			if (f != 0)
				for (int j = 0; j < n; j++) c[i * n + j] += f * b[k * n + j];
		}
}

/* balance scales a to d^-1 a d, d diagonal of powers of two, such that rows and
 * columns come to have similar 1-norms (Parlett and Reinsch, Numer. Math. 13,
 * 1969). Positions and velocities of a fast oscillator then weigh the same,
 * which saves squarings and with them digits. */
static void balance(int n, double *a, double d[]) {
	for (int i = 0; i < n; i++) d[i] = 1;
	for (int changed = 1, sweep = 0; changed && sweep < 100; sweep++) {
		changed = 0;
		for (int i = 0; i < n; i++) {
			double row = 0, column = 0;
			int e;
			for (int j = 0; j < n; j++)
				if (j != i) {
					row += fabs(a[i * n + j]);
					column += fabs(a[j * n + i]);
				}
			if (row == 0 || column == 0) continue;
			frexp(sqrt(row / column), &e);
			double f = ldexp(1, e);
			if (!(row / f + column * f < 0.9 * (row + column))) continue; /* not worth it, or not finite */
			changed = 1;
			d[i] *= f;
			for (int j = 0; j < n; j++) {
				a[i * n + j] /= f;
				a[j * n + i] *= f;
			}
		}
	}
}

/* exponential replaces the n x n matrix work[0] by its exponential: balancing,
 * scaling, the Padé approximant of degree 13 and squaring (Higham, The Scaling
 * and Squaring Method for the Matrix Exponential Revisited, 2005, (2.1)-(2.3)).
 * The matrix is scaled to a 1-norm of at most 1, less than the 5.37 that degree
 * 13 needs: V - U is then diagonally dominant by columns, so that elimination
 * needs no pivoting and entries of very different size each keep their digits. */
static void exponential(int n, double work[7][LTI_SIZE * LTI_SIZE]) {
	static const double b[] = {64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800.,
	                           129060195264000.,   10559470521600.,    670442572800.,     33522128640.,
	                           1323241920.,        40840800.,          960960.,           16380.,
	                           182.,               1.};
	double *a = work[0], *a2 = work[1], *a4 = work[2], *a6 = work[3], *u = work[4], *v = work[5], *t = work[6];
	int nn = n * n, squarings = 0;
	double norm = 0, d[LTI_SIZE];
	balance(n, a, d);
	for (int j = 0; j < n; j++) {
		double sum = 0;
		for (int i = 0; i < n; i++) sum += fabs(a[i * n + j]);
		norm = fmax(norm, sum);
	}
	if (!isfinite(norm)) { /* what is not finite shows in the states */
		for (int i = 0; i < nn; i++) a[i] = NAN;
		return;
	}
	if (norm > 1) {
		frexp(norm, &squarings);
		for (int i = 0; i < nn; i++) a[i] = ldexp(a[i], -squarings);
	}
	multiply(n, a, a, a2);
	multiply(n, a2, a2, a4);
	multiply(n, a4, a2, a6);
	for (int i = 0; i < nn; i++) t[i] = b[13] * a6[i] + b[11] * a4[i] + b[9] * a2[i];
	multiply(n, a6, t, v);
	for (int i = 0; i < nn; i++)
		v[i] += b[7] * a6[i] + b[5] * a4[i] + b[3] * a2[i] + (i % (n + 1) == 0 ? b[1] : 0);
	multiply(n, a, v, u);
	for (int i = 0; i < nn; i++) t[i] = b[12] * a6[i] + b[10] * a4[i] + b[8] * a2[i];
	multiply(n, a6, t, v);
	for (int i = 0; i < nn; i++)
		v[i] += b[6] * a6[i] + b[4] * a4[i] + b[2] * a2[i] + (i % (n + 1) == 0 ? b[0] : 0);
	/* Solve (V - U) X = V + U; t is the left side, a becomes X. */
	for (int i = 0; i < nn; i++) {
		t[i] = v[i] - u[i];
		a[i] = v[i] + u[i];
	}
	for (int k = 0; k < n; k++)
		for (int i = k + 1; i < n; i++) {
			double f = t[i * n + k] / t[k * n + k];
			if (f == 0) continue;
			for (int j = k + 1; j < n; j++) t[i * n + j] -= f * t[k * n + j];
			for (int j = 0; j < n; j++) a[i * n + j] -= f * a[k * n + j];
		}
	for (int i = n - 1; i >= 0; i--)
		for (int j = 0; j < n; j++) {
			double sum = a[i * n + j];
			for (int k = i + 1; k < n; k++) sum -= t[i * n + k] * a[k * n + j];
			a[i * n + j] = sum / t[i * n + i];
		}
	for (; squarings > 0; squarings--) {
		multiply(n, a, a, t);
		memcpy(a, t, sizeof *a * (size_t)nn);
	}
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) a[i * n + j] *= d[i] / d[j];
}

/* compute fills in an Advance. With s = (time since t)/h and w_j = h^j u(j) the
 * states and a polynomial input form one autonomous system over s in 0..1,
 *
 *     dx/ds = hA x + hB w_0,   dw_j/ds = w_{j+1},   dw_order/ds = 0,
 *
 * whose exponential holds E and all G[j] h^-j in its first rows; A is never
 * inverted. Inputs are scaled by powers of two, so that a large B does not
 * drive up the number of squarings. */
static void compute(Lti *d, double h, int order, Advance *s) {
	int nx = d->nx, nu = d->nu, n = nx + nu * (order + 1);
	double *a = d->work[0], unit[MAX_INPUTS];
	memset(a, 0, sizeof *a * (size_t)(n * n));
	for (int i = 0; i < nx; i++)
		for (int j = 0; j < nx; j++) a[i * n + j] = h * d->l.A[i][j];
	for (int j = 0; j < nu; j++) {
		double largest = 0;
		int exponent = 0;
		for (int i = 0; i < nx; i++) largest = fmax(largest, fabs(h * d->l.B[i][j]));
		if (largest > 0) frexp(largest, &exponent);
		unit[j] = ldexp(1, exponent);
		for (int i = 0; i < nx; i++) a[i * n + nx + j] = h * d->l.B[i][j] / unit[j];
	}
	for (int i = nx; i < nx + nu * order; i++) a[i * n + i + nu] = 1;
	exponential(n, d->work);
	memset(s, 0, sizeof *s);
	s->h = h;
	s->order = order;
	double power = 1;
	for (int k = 0; k <= order; k++, power *= h)
		for (int i = 0; i < nx; i++)
			for (int j = 0; j < nu; j++) s->G[k][i][j] = a[i * n + nx + k * nu + j] * unit[j] * power;
	for (int i = 0; i < nx; i++)
		for (int j = 0; j < nx; j++) s->E[i][j] = a[i * n + j];
}

Linear *lti_begin(Instance *m) {
	Lti *d = m->data;
	memset(d, 0, sizeof *d);
	return &d->l;
}

void lti_end(Instance *m) {
	Lti *d = m->data;
	for (int i = 0; i < FMU_NX; i++) {
		for (int j = 0; j < FMU_NX; j++)
			if (d->l.A[i][j] != 0) {
				if (i >= d->nx) d->nx = i + 1;
				if (j >= d->nx) d->nx = j + 1;
			}
		for (int j = 0; j < FMU_NU; j++)
			if (d->l.B[i][j] != 0) {
				if (i >= d->nx) d->nx = i + 1;
				if (j >= d->nu) d->nu = j + 1;
			}
	}
}

void lti_evaluate(const Instance *m, const double x[], const double u[], double dx[], double y[]) {
	const Linear *l = &((const Lti *)m->data)->l;
	for (int i = 0; i < FMU_NX; i++) {
		double sum = 0;
		for (int j = 0; j < FMU_NX; j++) sum += l->A[i][j] * x[j];
		for (int j = 0; j < FMU_NU; j++) sum += l->B[i][j] * u[j];
		dx[i] = sum;
	}
	for (int i = 0; i < FMU_NY; i++) {
		double sum = 0;
		for (int j = 0; j < FMU_NX; j++) sum += l->C[i][j] * x[j];
		for (int j = 0; j < FMU_NU; j++) sum += l->D[i][j] * u[j];
		y[i] = sum;
	}
}

void lti_jacobian(const Instance *m, const double x[], const double u[], Linear *l) {
	(void)x;
	(void)u;
	*l = ((const Lti *)m->data)->l;
}

/* The matrices are a function of h and the order alone, whatever was stepped
 * before: what is kept saves time and changes no bit. */
void lti_step(Instance *m, double h, double x[]) {
	Lti *d = m->data;
	int order = m->s.order;
	if (d->nx == 0) return;
	Advance *a = NULL;
	for (int i = 0; i < LTI_SLOTS; i++)
		if (d->slot[i].h == h && d->slot[i].order == order) a = &d->slot[i];
	if (!a) {
		a = &d->slot[d->next];
		d->next = (d->next + 1) % LTI_SLOTS;
		compute(d, h, order, a);
	}
	double next[MAX_STATES];
	for (int i = 0; i < d->nx; i++) {
		double sum = 0;
		for (int j = 0; j < d->nx; j++) sum += a->E[i][j] * x[j];
		for (int k = 0; k <= order; k++)
			for (int j = 0; j < d->nu; j++) sum += a->G[k][i][j] * m->s.u[k][j];
		next[i] = sum;
	}
	memcpy(x, next, sizeof *x * (size_t)d->nx);
}
