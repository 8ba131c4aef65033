/* The framework under our FMUs: what fmu.c does for every model, what a model has
 * to give it, and what the interface does, api2.c for FMI 2.0 and api3.c for 3.0. One shared library holds one model; all that changes
 * lives in the Instance, nothing in globals. */
#ifndef FMU_H
#define FMU_H

#include "guid.h" /* made for each model: its GUID, and what it needs of the description */

#include <stddef.h>
#include <stdint.h>

/* Callbacks are those of the master; REF names a variable in a message. */
#if FMU_FMI == 3
#include "fmi3.h"
typedef struct {
	fmi3LogMessageCallback logger;
	fmi3InstanceEnvironment componentEnvironment; /* the name is that of FMI 2.0 */
} Callbacks;
#define REF(type) "#%u#"
#define GUID_NAME "instantiation token"
#else
#include "fmi2.h"
typedef fmi2CallbackFunctions Callbacks;
#define REF(type) "#" type "%u#"
#define GUID_NAME "GUID"
#endif

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
	MAX_MESSAGE = 2 * MAX_TEXT,
	MAX_ORDER = 5,           /* highest derivative of an input */
	ORDERS = MAX_ORDER + 1   /* the value and its derivatives */
};

/* What a real variable is decides when it can be set and where its value is. */
typedef enum { INPUT, STATE, DERIVATIVE, CALCULATED, INDEPENDENT, PARAMETER } Role;

/* The variables are those of fmus/models.go: guid.h lists them as FMU_REALS,
 * FMU_INTEGERS and FMU_TEXTS, and counts the states, inputs and calculated outputs
 * (FMU_NX, FMU_NU, FMU_NY). Value references are indices, counted from FIRST_INTEGER
 * and FIRST_TEXT, which are 0 in FMI 2.0. */

/* Real describes a real variable: its index among those of its role (for
 * DERIVATIVE: of the state differentiated). */
typedef struct {
	Role role;
	int index;
	double start;
} Real;

typedef struct {
	int start, min, enumeration;
} Integer;

/* Status has the numbers of both standards; Pending is of FMI 2.0. */
typedef enum { StatusOK, StatusWarning, StatusDiscard, StatusError, StatusFatal, StatusPending } Status;

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
	const char *function;    /* that is being called, for messages */
	int logged;              /* categories */
	int ended;               /* the last step asks to end the simulation */
	char *name;
	Callbacks callbacks;
};

/* The one model of this library. */
extern const Model model;

/* polynomial gives the inputs tau after the point where u[j] is their j-th
 * derivative, j = 0..order, as the Taylor polynomial of that degree. */
void polynomial(double u[][MAX_INPUTS], int order, double tau, double value[]);

/* The functions of the standard, without what differs between its versions. The
 * caller has set Instance.function. */
Instance *fmu_new(const Callbacks *, const char *function, const char *name, const char *guid, const char *wrong, int logging);
void fmu_free(Instance *);
Status fmu_logging(Instance *, int on, size_t n, const char *const categories[]);
Status fmu_experiment(Instance *, int has_tolerance, double tolerance, double start, int has_stop, double stop);
Status fmu_initialize(Instance *);
Status fmu_start(Instance *);
Status fmu_terminate(Instance *);
Status fmu_reset(Instance *);
Status fmu_get_reals(Instance *, const unsigned vr[], size_t, double[]);
Status fmu_set_reals(Instance *, const unsigned vr[], size_t, const double[]);
Status fmu_get_integers(Instance *, const unsigned vr[], size_t, void *, int wide); /* wide: int64_t, otherwise int */
Status fmu_set_integers(Instance *, const unsigned vr[], size_t, const void *, int wide);
Status fmu_get_texts(Instance *, const unsigned vr[], size_t, const char *[]);
Status fmu_set_texts(Instance *, const unsigned vr[], size_t, const char *const[]);
Status fmu_step(Instance *, double t, double h, int no_restore);
Status fmu_ask(Instance *); /* allows questions about the last step */
Status fmu_set_input_derivatives(Instance *, const unsigned vr[], size_t, const int order[], const double[]);
Status fmu_get_output_derivatives(Instance *, const unsigned vr[], size_t, const int order[], double[]);
Status fmu_directional(Instance *, const unsigned unknown[], size_t, const unsigned known[], size_t, const double seed[],
                       double sensitivity[]);
Status fmu_get_state(Instance *, void **);
Status fmu_set_state(Instance *, void *);
Status fmu_free_state(Instance *, void **);
Status fmu_state_size(Instance *, void *, size_t *);
Status fmu_serialize(Instance *, void *, char[], size_t);
Status fmu_deserialize(Instance *, const char[], size_t, void **);

/* refuse logs why the function that is being called returns the status. An error
 * ends the simulation. */
Status refuse(Instance *, Status, const char *format, ...);

/* OPTIONAL is a function that black boxes do not have. */
#ifdef FMU_PLAIN
#define OPTIONAL(call) refuse(m, StatusError, "not offered by this FMU")
#else
#define OPTIONAL(call) call
#endif

/* What the interface gives: memory, which is zeroed, and log messages. */
void *allocate(const Callbacks *, size_t);
void release(const Callbacks *, void *);
void deliver(const Callbacks *, const char *name, Status, const char *category, const char *text);

#endif
