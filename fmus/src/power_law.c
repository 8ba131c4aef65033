#include "power_law.h"

#include <math.h>

double power_law(double k, double n, double z) {
	if (n == 1) return k * z;
	double f = k * pow(fabs(z), n);
	return z < 0 ? -f : f;
}

double power_slope(double k, double n, double z) {
	if (n == 1) return k;
	double a = fabs(z);
	return k * n * pow(n < 1 ? fmax(a, 1e-6) : a, n - 1);
}
