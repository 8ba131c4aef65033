/* Steps by Euler's formulas, forward and symplectic, and the suspension of the
 * quarter car. */
#ifndef EULER_H
#define EULER_H

#include "fmu.h"

/* euler_step makes s.n[0] micro steps of one size. Every right side is taken at
 * the start of its micro step, from the old states and the inputs there. */
void euler_step(Instance *, double h, double x[]);

/* symplectic_step makes s.n[0] micro steps of one size. The first half of the
 * states are positions, the second half their rates. The accelerations are taken
 * at the start of the micro step, with the inputs there; the positions move with
 * the new rates:
 *
 *     v += h a(x, v, u),   x += h v
 */
void symplectic_step(Instance *, double h, double x[]);

/* last_micro_step gives where the last of s.n[0] micro steps starts: Model.sampled
 * of models that give their outputs with the inputs that this step used. */
double last_micro_step(const Instance *, double h);

/* suspension gives k z + d sign(v) |v|^(2/(1+2 n)) (sadjina (18c)), where z and v
 * are the chassis' displacement and velocity less the wheel's. */
double suspension(double k, double d, double n, double z, double v);

/* suspension_slope gives its derivative by v. With n > 0.5 it grows without
 * bound as v goes to 0; it is taken at |v| >= 1e-6 m/s. */
double suspension_slope(double d, double n, double v);

#endif
