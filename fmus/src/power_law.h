/* Springs and dampers whose force grows with a power of the deformation, and the
 * parameters that the masses of the energy-* and the nonlinear oscillators share. */
#ifndef POWER_LAW_H
#define POWER_LAW_H

/* power_law gives k sgn(z) |z|^n, in SI units: n = 1 is linear, n = 0.5 the
 * square-root spring (22) and n = 2 the quadratic damper (23) of rodriguez. */
double power_law(double k, double n, double z);

/* power_slope gives its derivative by z. With n below 1 it grows without bound
 * as z goes to 0; it is taken at |z| >= 1e-6 there. */
double power_slope(double k, double n, double z);

#endif
