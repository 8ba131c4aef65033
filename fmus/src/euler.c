#include "euler.h"

#include <math.h>

void euler_step(Instance *m, double h, double x[]) {
	int n = m->s.n[0];
	double micro = h / n, u[MAX_INPUTS], dx[MAX_STATES], y[MAX_OUTPUTS];
	for (int k = 0; k < n; k++) {
		polynomial(m->s.u, m->s.order, k * micro, u);
		model.evaluate(m, x, u, dx, y);
		for (int i = 0; i < FMU_NX; i++) x[i] += micro * dx[i];
	}
}

void symplectic_step(Instance *m, double h, double x[]) {
	int n = m->s.n[0], half = FMU_NX / 2;
	double micro = h / n, u[MAX_INPUTS], dx[MAX_STATES], y[MAX_OUTPUTS];
	for (int k = 0; k < n; k++) {
		polynomial(m->s.u, m->s.order, k * micro, u);
		model.evaluate(m, x, u, dx, y);
		for (int i = half; i < FMU_NX; i++) x[i] += micro * dx[i];
		for (int i = 0; i < half; i++) x[i] += micro * x[half + i];
	}
}

double last_micro_step(const Instance *m, double h) {
	int n = m->s.n[0];
	return (n - 1) * (h / n);
}

double suspension(double k, double d, double n, double z, double v) {
	/* pow(|v|, 1) is |v|, but not all libraries take the short way. */
	double e = 2 / (1 + 2 * n), a = fabs(v), f = d * (e == 1 ? a : pow(a, e));
	return k * z + (v < 0 ? -f : f);
}

double suspension_slope(double d, double n, double v) {
	double e = 2 / (1 + 2 * n);
	return e == 1 ? d : d * e * pow(fmax(fabs(v), 1e-6), e - 1);
}
