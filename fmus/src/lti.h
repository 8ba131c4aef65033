/* Linear time-invariant models, x' = A x + B u, y = C x + D u, advanced exactly
 * for polynomial inputs. */
#ifndef LTI_H
#define LTI_H

#include "fmu.h"

enum {
	LTI_SIZE = MAX_STATES + MAX_INPUTS * ORDERS, /* of the largest block matrix */
	LTI_SLOTS = 8
};

/* Advance holds x(t+h) = E x(t) + sum over j of G[j] u(j)(t), j = 0..order. */
typedef struct {
	double h;
	int order;
	double E[MAX_STATES][MAX_STATES], G[ORDERS][MAX_STATES][MAX_INPUTS];
} Advance;

/* Lti is Instance.data of a linear model. Model.prepare fills in l through
 * lti_begin and lti_end; the rest is kept by lti.c. */
typedef struct {
	Linear l;
	int nx, nu; /* without trailing states and inputs that take no part */
	Advance slot[LTI_SLOTS]; /* h = 0: free */
	int next;
	double work[7][LTI_SIZE * LTI_SIZE];
} Lti;

/* lti_begin gives the zeroed coefficients to fill in, lti_end takes them over. */
Linear *lti_begin(Instance *);
void lti_end(Instance *);

/* The functions of the Model. */
void lti_evaluate(const Instance *, const double x[], const double u[], double dx[], double y[]);
void lti_jacobian(const Instance *, const double x[], const double u[], Linear *);
void lti_step(Instance *, double h, double x[]);

#endif
