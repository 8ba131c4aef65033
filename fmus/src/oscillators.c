#include "oscillators.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { ARRAYS = 46 }; /* doubles per mass in the scratch, see oscillators_begin */

void oscillators_extent(int n, size_t *kept, size_t *scratch) {
	*kept = 2 * (size_t)n + 1;
	*scratch = ARRAYS * (size_t)n;
}

Oscillators *oscillators_begin(Instance *m, int n) {
	Oscillators *o = m->data;
	double *next = m->scratch;
	memset(o, 0, sizeof *o);
	memset(next, 0, ARRAYS * (size_t)n * sizeof *next);
	o->n = n;
#define TAKE(array, times) (array) = next, next += (times) * (size_t)n
	TAKE(o->contact, 1);
	TAKE(o->pushed, 1);
	for (int i = 0; i < 2; i++) {
		TAKE(o->stiffness[i], 1);
		TAKE(o->damping[i], 1);
	}
	TAKE(o->pivot, 1);
	TAKE(o->factor, 1);
	TAKE(o->cpivot, 2);
	TAKE(o->cfactor, 2);
	TAKE(o->y, 2);
	TAKE(o->f0, 2);
	TAKE(o->scale, 2);
	TAKE(o->error, 2);
	TAKE(o->at, 2);
	for (int i = 0; i < 3; i++) {
		TAKE(o->z[i], 2);
		TAKE(o->w[i], 2);
		TAKE(o->f[i], 2);
	}
#undef TAKE
	return o;
}

const char *oscillators_end(Instance *m) {
	Oscillators *o = m->data;
	if (!(o->m > 0)) return "the mass m must be positive";
	/* Tighter tolerances than this drown in the rounding of the stages. */
	if (!(o->rtol >= 1e-13) || !(o->atol_x > 0) || !(o->atol_v > 0))
		return "the tolerances must be positive and rtol at least 1e-13";
	for (int i = 0; i < o->n; i++) o->impulses |= o->pushed[i] != 0;
	const Impulse *p = &o->impulse;
	if (o->impulses && !(p->period > 0 && p->duration >= 0 && p->delta > 0 && p->duration + p->delta <= 100 * p->period))
		return "impulses need a positive period and delta, a duration, and must not overlap a hundredfold";
	return NULL;
}

/* The forces. */

static double impulse(const Impulse *p, double t) {
	/* Outside of this many delta the tanh are 1 to the last bit. */
	const double reach = 20 * p->delta;
	double first = ceil((t - p->first - p->duration - reach) / p->period), last = floor((t - p->first + reach) / p->period);
	double sum = 0;
	for (double k = fmax(first, 0); k <= last; k++) {
		double since = t - (p->first + k * p->period);
		sum += 0.5 * (tanh(since / p->delta) - tanh((since - p->duration) / p->delta));
	}
	return sum;
}

static double law(const Oscillators *o, double s, double r) {
	return s * (o->c + o->C * s * s) + r * (o->d + o->D * r * r);
}

void oscillators_accelerations(const Oscillators *o, double t, const double x[], const double v[],
                               double first, double last, double a[]) {
	int n = o->n;
	double p = o->impulses ? impulse(&o->impulse, t) : 0;
	double left = o->ground[0] ? law(o, x[0], v[0]) : 0;
	for (int i = 0; i < n; i++) {
		double right = i + 1 < n ? law(o, x[i + 1] - x[i], v[i + 1] - v[i]) : o->ground[1] ? law(o, -x[i], -v[i]) : 0;
		double force = right - left + o->pushed[i] * p;
		if (o->contact[i] != 0) force += o->contact[i] * exp(o->B * x[i]);
		if (i == 0) force += first;
		if (i == n - 1) force += last;
		a[i] = force / o->m;
		left = right;
	}
}

/* element gives the slopes of one spring and damper. */
static void element(const Oscillators *o, double s, double r, double *k, double *d) {
	*k = o->c + 3 * o->C * s * s;
	*d = o->d + 3 * o->D * r * r;
}

void oscillators_slopes(const Oscillators *o, const double x[], const double v[], int i, double k[2], double d[2]) {
	int n = o->n;
	double ke = 0, de = 0;
	k[0] = k[1] = d[0] = d[1] = 0;
	if (i > 0) element(o, x[i] - x[i - 1], v[i] - v[i - 1], &ke, &de);
	else if (o->ground[0]) element(o, x[i], v[i], &ke, &de);
	k[0] += ke;
	d[0] += de;
	ke = de = 0;
	if (i + 1 < n) {
		element(o, x[i + 1] - x[i], v[i + 1] - v[i], &ke, &de);
		k[1] = -ke;
		d[1] = -de;
	} else if (o->ground[1]) {
		element(o, x[i], v[i], &ke, &de);
	}
	k[0] += ke;
	d[0] += de;
	if (o->contact[i] != 0) k[0] -= o->contact[i] * o->B * exp(o->B * x[i]);
}

/* The linear systems. With mu = gamma/h and J the partial derivatives of the
 * right side, (mu - J) (X, V) = (a, b) is
 *
 *     (mu m + D + K/mu) V = m b - K a/mu,   X = (V + a)/mu,
 *
 * symmetric, tridiagonal and, where springs and dampers are, positive definite
 * (in its real part if mu is complex), so that it needs no pivoting. */

static void factor_real(Oscillators *o, double mu) {
	int n = o->n;
	for (int i = 0; i < n; i++) {
		double p = mu * o->m + o->damping[0][i] + o->stiffness[0][i] / mu;
		if (i > 0) p -= o->factor[i - 1] * (o->damping[1][i - 1] + o->stiffness[1][i - 1] / mu);
		o->pivot[i] = p;
		o->factor[i] = (o->damping[1][i] + o->stiffness[1][i] / mu) / p;
	}
}

static void solve_real(const Oscillators *o, double mu, double b[]) {
	int n = o->n;
	double *a = b, *v = b + n; /* v becomes the right side, then V */
	for (int i = 0; i < n; i++) {
		double ka = o->stiffness[0][i] * a[i];
		if (i > 0) ka += o->stiffness[1][i - 1] * a[i - 1];
		if (i + 1 < n) ka += o->stiffness[1][i] * a[i + 1];
		v[i] = o->m * v[i] - ka / mu;
	}
	for (int i = 1; i < n; i++) v[i] -= o->factor[i - 1] * v[i - 1];
	v[n - 1] /= o->pivot[n - 1];
	for (int i = n - 2; i >= 0; i--) v[i] = v[i] / o->pivot[i] - o->factor[i] * v[i + 1];
	for (int i = 0; i < n; i++) a[i] = (v[i] + a[i]) / mu;
}

typedef struct {
	double re, im;
} Complex;

static Complex times(Complex a, Complex b) { return (Complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

static Complex over(Complex a, Complex b) { /* the parts of b are of similar size here */
	double n = b.re * b.re + b.im * b.im;
	return (Complex){(a.re * b.re + a.im * b.im) / n, (a.im * b.re - a.re * b.im) / n};
}

static void factor_complex(Oscillators *o, Complex mu) {
	int n = o->n;
	Complex inverse = over((Complex){1, 0}, mu), l = {0, 0}, q = {0, 0};
	for (int i = 0; i < n; i++) {
		Complex p = {mu.re * o->m + o->damping[0][i] + o->stiffness[0][i] * inverse.re,
		             mu.im * o->m + o->stiffness[0][i] * inverse.im};
		Complex lq = times(l, q);
		p.re -= lq.re;
		p.im -= lq.im;
		q = (Complex){o->damping[1][i] + o->stiffness[1][i] * inverse.re, o->stiffness[1][i] * inverse.im};
		l = over(q, p);
		((Complex *)o->cpivot)[i] = p;
		((Complex *)o->cfactor)[i] = l;
	}
}

/* solve_complex solves for b + i c in place. */
static void solve_complex(const Oscillators *o, Complex mu, double b[], double c[]) {
	int n = o->n;
	const Complex *pivot = (const Complex *)o->cpivot, *factor = (const Complex *)o->cfactor;
	double *vr = b + n, *vi = c + n;
	for (int i = 0; i < n; i++) {
		Complex ka = {o->stiffness[0][i] * b[i], o->stiffness[0][i] * c[i]};
		if (i > 0) {
			ka.re += o->stiffness[1][i - 1] * b[i - 1];
			ka.im += o->stiffness[1][i - 1] * c[i - 1];
		}
		if (i + 1 < n) {
			ka.re += o->stiffness[1][i] * b[i + 1];
			ka.im += o->stiffness[1][i] * c[i + 1];
		}
		ka = over(ka, mu);
		vr[i] = o->m * vr[i] - ka.re;
		vi[i] = o->m * vi[i] - ka.im;
	}
	for (int i = 1; i < n; i++) {
		Complex t = times(factor[i - 1], (Complex){vr[i - 1], vi[i - 1]});
		vr[i] -= t.re;
		vi[i] -= t.im;
	}
	for (int i = n - 1; i >= 0; i--) {
		Complex t = over((Complex){vr[i], vi[i]}, pivot[i]);
		if (i + 1 < n) {
			Complex s = times(factor[i], (Complex){vr[i + 1], vi[i + 1]});
			t.re -= s.re;
			t.im -= s.im;
		}
		vr[i] = t.re;
		vi[i] = t.im;
	}
	for (int i = 0; i < n; i++) {
		Complex x = over((Complex){vr[i] + b[i], vi[i] + c[i]}, mu);
		b[i] = x.re;
		c[i] = x.im;
	}
}

/* The integration: Radau IIA of order 5 with simplified Newton iterations and an
 * embedded error estimate of order 3, as in Hairer and Wanner, Solving Ordinary
 * Differential Equations II, IV.8 (RADAU5). Different from there:
 *
 * - The Jacobian is exact and new in every step, and the iteration starts from 0
 *   and goes on until its error is KAPPA of the tolerance. Nothing but the step
 *   size is carried from one step to the next, and results change smoothly with
 *   the inputs, which finite differences across a step rely on.
 * - Errors are measured in the maximum norm, so that one mass in contact is not
 *   averaged away by many that are not. */

#define SQRT6 2.4494897427831780982
static const double node[3] = {(4 - SQRT6) / 10, (4 + SQRT6) / 10, 1};
static const double T[3][3] = {
	{9.1232394870892942792e-02, -0.14125529502095420843, -3.0029194105147424492e-02},
	{0.24171793270710701896, 0.20412935229379993199, 0.38294211275726193779},
	{0.96604818261509293619, 1, 0},
};
static const double TI[3][3] = {
	{4.3255798900631553510, 0.33919925181580986954, 0.54177053993587487119},
	{-4.1787185915519047273, -0.32768282076106238708, 0.47662355450055045196},
	{-0.50287263494578687595, 2.5719269498556054292, -0.59603920482822492497},
};
/* The eigenvalues of the inverse of the method's matrix: gamma, alpha +- i beta. */
static const double gamma_ = 3.6378342527444957322, alpha = 2.6810828736277521339, beta = 3.0504301992474105694;
static const double estimate[3] = {-(13 + 7 * SQRT6) / 3, (-13 + 7 * SQRT6) / 3, -1. / 3};

enum { MOST_ITERATIONS = 12, MOST_STEPS = 1000000 };
#define KAPPA 1e-3

/* right gives f(y) = (v, a) at tau after the start of the communication step. */
static void right(Instance *m, double tau, const double y[], double f[]) {
	const Oscillators *o = m->data;
	double u[MAX_INPUTS] = {0};
	polynomial(m->s.u, m->s.order, tau, u);
	memcpy(f, y + o->n, (size_t)o->n * sizeof *f);
	oscillators_accelerations(o, m->s.time + tau, y, y + o->n, u[0], FMU_NU > 1 ? u[1] : 0, f + o->n);
}

/* size is the norm of e; it is not finite if an entry is not. */
static double size(const Oscillators *o, const double e[]) {
	double largest = 0;
	for (int i = 0; i < 2 * o->n; i++) {
		double r = fabs(e[i]) / o->scale[i];
		if (!(r <= largest)) largest = r;
		if (isnan(r)) return NAN;
	}
	return largest;
}

/* stages finds Z. It gives 0 if the iteration does not converge. */
static int stages(Instance *m, double tau, double h) {
	Oscillators *o = m->data;
	int n2 = 2 * o->n;
	double mu = gamma_ / h, enough = fmax(KAPPA, 10 * DBL_EPSILON / o->rtol), before = 0;
	Complex cmu = {alpha / h, beta / h};
	factor_real(o, mu);
	factor_complex(o, cmu);
	for (int s = 0; s < 3; s++) {
		memset(o->z[s], 0, (size_t)n2 * sizeof *o->z[s]);
		memset(o->w[s], 0, (size_t)n2 * sizeof *o->w[s]);
	}
	for (int k = 0; k < MOST_ITERATIONS; k++) {
		for (int s = 0; s < 3; s++) {
			for (int i = 0; i < n2; i++) o->at[i] = o->y[i] + o->z[s][i];
			right(m, tau + node[s] * h, o->at, o->f[s]);
		}
		for (int i = 0; i < n2; i++) {
			double f0 = o->f[0][i], f1 = o->f[1][i], f2 = o->f[2][i];
			double w0 = o->w[0][i], w1 = o->w[1][i], w2 = o->w[2][i];
			o->f[0][i] = TI[0][0] * f0 + TI[0][1] * f1 + TI[0][2] * f2 - mu * w0;
			o->f[1][i] = TI[1][0] * f0 + TI[1][1] * f1 + TI[1][2] * f2 - (cmu.re * w1 - cmu.im * w2);
			o->f[2][i] = TI[2][0] * f0 + TI[2][1] * f1 + TI[2][2] * f2 - (cmu.im * w1 + cmu.re * w2);
		}
		solve_real(o, mu, o->f[0]);
		solve_complex(o, cmu, o->f[1], o->f[2]);
		double change = 0;
		for (int s = 0; s < 3; s++) {
			double c = size(o, o->f[s]);
			if (!isfinite(c)) return 0;
			change = fmax(change, c);
			for (int i = 0; i < n2; i++) o->w[s][i] += o->f[s][i];
		}
		for (int s = 0; s < 3; s++)
			for (int i = 0; i < n2; i++)
				o->z[s][i] = T[s][0] * o->w[0][i] + T[s][1] * o->w[1][i] + T[s][2] * o->w[2][i];
		if (change == 0) return 1;
		if (k > 0) {
			double theta = change / before;
			if (!(theta < 0.99)) return change <= enough; /* no more than rounding is left */
			if (theta / (1 - theta) * change <= enough) return 1;
		}
		before = change;
	}
	return 0;
}

/* local_error gives the norm of the estimate; f0 is the right side at the start. */
static double local_error(Instance *m, double tau, double h) {
	Oscillators *o = m->data;
	int n2 = 2 * o->n;
	double mu = gamma_ / h;
	for (int i = 0; i < n2; i++) {
		double e = (estimate[0] * o->z[0][i] + estimate[1] * o->z[1][i] + estimate[2] * o->z[2][i]) / h;
		o->f[0][i] = e;
		o->error[i] = e + o->f0[i];
	}
	solve_real(o, mu, o->error);
	double e = size(o, o->error);
	if (!(e >= 1)) return e;
	/* Filtered once more, which does not overestimate stiff components (8.20). */
	for (int i = 0; i < n2; i++) o->at[i] = o->y[i] + o->error[i];
	right(m, tau, o->at, o->error);
	for (int i = 0; i < n2; i++) o->error[i] += o->f[0][i];
	solve_real(o, mu, o->error);
	return size(o, o->error);
}

void oscillators_step(Instance *m, double H) {
	Oscillators *o = m->data;
	int n = o->n;
	double *y = o->y, *h = m->kept + 2 * n, tau = 0;
	memcpy(y, m->kept, 2 * (size_t)n * sizeof *y);
	if (*h == 0) *h = H;
	for (int steps = 0; tau < H; steps++) {
		if (steps == MOST_STEPS) {
			m->refused = "the integration needs more than a million steps";
			return;
		}
		right(m, tau, y, o->f0);
		for (int i = 0; i < n; i++) {
			double k[2], d[2];
			oscillators_slopes(o, y, y + n, i, k, d);
			o->stiffness[0][i] = k[0];
			o->stiffness[1][i] = k[1];
			o->damping[0][i] = d[0];
			o->damping[1][i] = d[1];
			o->scale[i] = o->atol_x + o->rtol * fabs(y[i]);
			o->scale[n + i] = o->atol_v + o->rtol * fabs(y[n + i]);
		}
		for (;;) {
			/* The end is met by one step or by two of equal size, never by a tiny one. */
			double left = H - tau, step = *h >= left ? left : *h > left / 2 ? left / 2 : *h;
			if (!(step > 4 * DBL_EPSILON * H)) {
				m->refused = "the integration does not go on: no step is small enough";
				return;
			}
			if (!stages(m, tau, step)) {
				*h = step / 4;
				continue;
			}
			double e = local_error(m, tau, step);
			if (!isfinite(e)) {
				*h = step / 4;
				continue;
			}
			/* The usual bounds and safety factor (IV.8, RADAU5). */
			double next = step * fmin(8, fmax(0.2, 0.9 * pow(fmax(e, 1e-30), -0.25)));
			if (e > 1) {
				*h = next;
				continue;
			}
			/* A step cut short says nothing against a larger one. */
			*h = step < *h && next >= step ? fmax(*h, next) : next;
			for (int i = 0; i < 2 * n; i++) y[i] += o->z[2][i];
			tau = step == left ? H : tau + step;
			break;
		}
	}
	memcpy(m->kept, y, 2 * (size_t)n * sizeof *y);
}

/* Random numbers that depend on nothing but their place, so that a chain is the
 * same however it is cut: the output function of SplitMix64 (Steele, Lea and
 * Flood, Fast Splittable Pseudorandom Number Generators, 2014), applied twice. */

static uint64_t mix(uint64_t z) {
	z += 0x9E3779B97F4A7C15u;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

double uniform(int seed, int index, int stream) {
	uint64_t place = (uint64_t)(uint32_t)index << 32 | (uint32_t)stream;
	return (double)(mix(mix((uint64_t)(uint32_t)seed) ^ place) >> 11) / 9007199254740992.0;
}

int random_pick(int seed, int index, int stream, int chosen) {
	double own = uniform(seed, index, stream);
	int first = (index - 1) / 10 * 10 + 1, before = 0;
	for (int i = first; i < first + 10; i++) before += uniform(seed, i, stream) < own;
	return before < chosen;
}
