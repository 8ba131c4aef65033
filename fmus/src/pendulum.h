/* A point mass on a massless rod in Cartesian coordinates: differential-algebraic
 * equations solved by an augmented Lagrangian. */
#ifndef PENDULUM_H
#define PENDULUM_H

#include "fmu.h"

/* The states, and the parameters that both pendula begin with. */
enum { X, Y, V_X, V_Y };
enum { M, L, X_PIN, THETA0, G, ALPHA, XI, OMEGA, PENDULUM_PARAMETERS };

/* pendulum_start checks the parameters and gives the states at rest at theta0. */
const char *pendulum_start(const double p[], double x[]);

/* pendulum_right gives the right side under the force f besides gravity. With r
 * the position seen from the pin at (x_pin, 0), the constraint
 *
 *     Phi = (r.r - l^2) / (2 l) = 0,   J = r / l
 *
 * is held by iterating (Bayo, Garcia de Jalon, Serna 1988; rodriguez 4.3)
 *
 *     (m I + alpha J^T J) a_{i+1} = m a_i - alpha J^T (J' v + 2 xi omega Phi' + omega^2 Phi)
 *
 * from m a_0 = f + m g, which leads to J a = -(J' v + 2 xi omega Phi' + omega^2 Phi)
 * with a_i - a_0 along J^T: each step leaves m / (m + alpha) of the distance. */
void pendulum_right(const double p[], const double x[], const double f[2], double dx[]);

#endif
