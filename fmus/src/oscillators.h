/* Masses in a row, joined by nonlinear springs and dampers (meyer 6.1, 6.2):
 *
 *     x_i' = v_i
 *     m v_i' = F_SD,i+1 - F_SD,i + A_i e^(B x_i) + P_i p(t) + external forces
 *     F_SD,i = c s + d r + C s^3 + D r^3,   s = x_i - x_i-1,  r = v_i - v_i-1   (37)
 *
 * They are integrated by Radau IIA with an adaptive step size; the cost grows
 * linearly with the number of masses. What a step depends on is all in the
 * Instance's kept numbers: a step repeated from a restored state is the same to
 * the last bit. */
#ifndef OSCILLATORS_H
#define OSCILLATORS_H

#include "fmu.h"

/* Impulse is p(t), the sum over k = 0, 1, ... of
 *
 *     (tanh((t - t_k)/delta) - tanh((t - t_k - duration)/delta)) / 2,  t_k = first + k period
 *
 * which rises from 0 to 1 at each t_k and falls again duration later. */
typedef struct {
	double first, period, duration, delta;
} Impulse;

/* Oscillators is Instance.data. Model.prepare fills in the upper half through
 * oscillators_begin; the rest belongs to oscillators.c. */
typedef struct {
	double m, c, d, C, D;   /* of each mass, and of each spring and damper */
	int ground[2];          /* whether the first, the last mass is joined to the ground */
	double B;               /* of the contacts, 1/m */
	Impulse impulse;
	double rtol, atol_x, atol_v; /* of the integration */
	double *contact;        /* [n] A_i, N; 0: no contact */
	double *pushed;         /* [n] P_i, N */
	int n;

	int impulses;           /* whether one P_i is not 0 */
	double *stiffness[2], *damping[2]; /* [n] -dF/dx and -dF/dv: diagonal and what couples i and i+1 */
	double *pivot, *factor;            /* [n] of the real system */
	double *cpivot, *cfactor;          /* [2n] of the complex one: real and imaginary parts in turn */
	double *y, *f0, *scale, *error, *at; /* [2n] */
	double *z[3], *w[3], *f[3];          /* [2n] */
} Oscillators;

/* What an Instance with n masses needs: the kept numbers are x [n], v [n] and the
 * step size to go on with (0: none yet). */
void oscillators_extent(int n, size_t *kept, size_t *scratch);

/* oscillators_begin lays out the scratch for n masses and zeroes contact and pushed. */
Oscillators *oscillators_begin(Instance *, int n);

/* oscillators_end takes over what was filled in. It gives null, or what is wrong. */
const char *oscillators_end(Instance *);

/* oscillators_accelerations gives a [n] of x and v [n] at a time under the forces
 * on the first and the last mass; for one mass both act on it. */
void oscillators_accelerations(const Oscillators *, double t, const double x[], const double v[],
                               double first, double last, double a[]);

/* oscillators_slopes gives K = -m da/dx and D = -m da/dv of mass i: its own (k[0],
 * d[0]) and those by its right neighbour (k[1], d[1]). */
void oscillators_slopes(const Oscillators *, const double x[], const double v[], int i, double k[2], double d[2]);

/* oscillators_step advances the kept numbers by h. The first input is the force
 * on the first mass, the second, if the model has one, that on the last. What
 * stops it is told in Instance.refused. */
void oscillators_step(Instance *, double h);

/* uniform gives the number in [0, 1) which belongs to a seed, an index and one of
 * several streams; random_pick tells whether the index, counted from 1, is among
 * the chosen of its ten. */
double uniform(int seed, int index, int stream);
int random_pick(int seed, int index, int stream, int chosen);

#endif
