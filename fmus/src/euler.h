/* Steps by forward Euler, and the suspension of the quarter car. */
#ifndef EULER_H
#define EULER_H

#include "fmu.h"

/* euler_step makes s.n[0] micro steps of one size. Every right side is taken at
 * the start of its micro step, from the old states and the inputs there. */
void euler_step(Instance *, double h, double x[]);

/* suspension gives k z + d sign(v) |v|^(2/(1+2 n)) (sadjina (18c)), where z and v
 * are the chassis' displacement and velocity less the wheel's. */
double suspension(double k, double d, double n, double z, double v);

/* suspension_slope gives its derivative by v. With n > 0.5 it grows without
 * bound as v goes to 0; it is taken at |v| >= 1e-6 m/s. */
double suspension_slope(double d, double n, double v);

#endif
