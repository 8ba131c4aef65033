/* Partial derivatives of models that are not differentiated by hand. */
#ifndef DIFFERENCES_H
#define DIFFERENCES_H

#include "fmu.h"

/* difference_jacobian is a Model.jacobian by central differences of
 * Model.evaluate. What does not depend on a variable gives exactly 0. */
void difference_jacobian(const Instance *, const double x[], const double u[], Linear *);

#endif
