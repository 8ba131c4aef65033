/* The framework under our FMUs: what fmu.c does for every model, and what a
 * model has to give it. One shared library holds one model; all that changes
 * lives in the Instance, nothing in globals. */
#ifndef FMU_H
#define FMU_H

#include "fmi2.h"
#include "guid.h" /* made for each model: its GUID, and what it needs of the description */

#ifndef FMU_STRINGS
#define FMU_STRINGS 0 /* string parameters */
#endif

enum {
	MAX_INPUTS = 4,
	MAX_STATES = 8,
	MAX_OUTPUTS = 4,
	MAX_PARAMETERS = 152,
	MAX_INTEGERS = 12,
	MAX_TEXT = 1024,         /* bytes of a string, its end included */
	MAX_ORDER = 5,           /* highest derivative of an input */
	ORDERS = MAX_ORDER + 1   /* the value and its derivatives */
};

/* What a real variable is decides when it can be set and where its value is. */
typedef enum { INPUT, STATE, DERIVATIVE, CALCULATED, INDEPENDENT, PARAMETER } Role;

/* The variables are those of fmus/models.go: guid.h lists them as FMU_REALS,
 * FMU_INTEGERS and FMU_TEXTS, and counts the states, inputs and calculated outputs
 * (FMU_NX, FMU_NU, FMU_NY). Value references are indices. */

/* Real describes a real variable: its index among those of its role (for
 * DERIVATIVE: of the state differentiated). */
typedef struct {
	Role role;
	int index;
	double start;
} Real;

typedef struct {
	int start, min;
} Integer;

/* State is all that a step can change but Instance.kept, and nothing that points
 * anywhere: both are what is saved, restored and serialised. */
typedef struct {
	double start, stop, time;
	double tolerance; /* relative, of the experiment; 0: none is given */
	int mode, has_experiment, has_stop;
	int order; /* highest input derivative set since the last step */
	double x[MAX_STATES], dx[MAX_STATES], y[MAX_OUTPUTS];
	double u[ORDERS][MAX_INPUTS]; /* u[j]: j-th derivative of the inputs at the start of the next step */
	double w[ORDERS][MAX_INPUTS]; /* the same where dx and y took them: at time, or where Model.sampled says */
	double h;                     /* step size in force, see lti.c */
	double p[MAX_PARAMETERS];
	int n[MAX_INTEGERS];
#if FMU_STRINGS
	char text[FMU_STRINGS][MAX_TEXT];
#endif
} State;

/* Linear holds the partial derivatives at a point: dx = A x + B u, y = C x + D u. */
typedef struct {
	double A[MAX_STATES][MAX_STATES], B[MAX_STATES][MAX_INPUTS];
	double C[MAX_OUTPUTS][MAX_STATES], D[MAX_OUTPUTS][MAX_INPUTS];
} Linear;

typedef struct Instance Instance;

/* Model is what one model gives. */
typedef struct {
	size_t data_size; /* bytes behind Instance.data */

	/* prepare computes what depends on the parameters alone into Instance.data
	 * and the states at the start into x. It returns null, or what is wrong with
	 * the parameters. */
	const char *(*prepare)(Instance *, double x[]);
	/* evaluate gives the right side and the outputs at a point. */
	void (*evaluate)(const Instance *, const double x[], const double u[], double dx[], double y[]);
	/* jacobian gives their partial derivatives; l comes zeroed. */
	void (*jacobian)(const Instance *, const double x[], const double u[], Linear *l);
	/* step advances x, which holds the states at s.time, by h under the inputs s.u.
	 * It may set Instance.refused to why it cannot: the step is then discarded. */
	void (*step)(Instance *, double h, double x[]);
	/* Models whose size follows from parameters have both, others null. extent says
	 * how many numbers of Instance.kept and Instance.scratch there are, or what is
	 * wrong with the parameters. prepare may fill in scratch, but leaves kept alone;
	 * begin gives kept at the start, after prepare. */
	const char *(*extent)(const Instance *, size_t *kept, size_t *scratch);
	void (*begin)(Instance *);
	/* sampled gives where in a step of size h the right side and the outputs that
	 * are read after it take the inputs, from its start; null: at its end. */
	double (*sampled)(const Instance *, double h);
} Model;

struct Instance {
	State s;
	void *data;
	const double *data_of_p; /* null: data is to be computed from s.p and s.n first */
	double *kept;            /* [n_kept] states that a model has beside s.x */
	double *before;          /* [n_kept] kept before the step that is made */
	double *scratch;         /* [n_scratch] what else belongs to data */
	size_t n_kept, n_scratch;
	size_t n_needed;         /* n_kept that belongs to data */
	const char *refused;     /* see Model.step */
	int debug, debug_categories;
	char *name;
	fmi2CallbackFunctions callbacks;
};

/* The one model of this library. */
extern const Model model;

/* polynomial gives the inputs tau after the point where u[j] is their j-th
 * derivative, j = 0..order, as the Taylor polynomial of that degree. */
void polynomial(double u[][MAX_INPUTS], int order, double tau, double value[]);

#endif
