/* What FMUs of FMI 2.0 and 3.0 have in common: all functions on top of one Model.
 *
 * Calls out of order, values that are not finite, times that do not meet and
 * handles of others are refused with a message to the logger. The order of
 * calls is that of the state machines (fmi2 4.2.4, FMI 3.0 4.2.1), with one
 * tolerance: inputs may also be set before initialization, as many masters do.
 *
 * Outputs are those at the end of the last step, under the input polynomial of
 * that step, at its end or where Model.sampled says; inputs set afterwards belong to the next step and change nothing
 * that can be read before it. A step uses up the input derivatives. Inputs not
 * set again stay at the value which the polynomial had reached. */
#include "fmu.h"
#ifdef FMU_WRAPPED
#define FMU_CORE
#include "wrap.h" /* another file stands in front of these functions */
#endif

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The states of the state machine, as bits. Steps are synchronous, and one that
 * is discarded leaves all as it was before, so that the other states of the
 * standard are not told apart. */
enum {
	INSTANTIATED = 1, INITIALIZATION = 2, STEPPED = 4, TERMINATED = 8, FAILED = 16,
	READABLE = INITIALIZATION | STEPPED | TERMINATED | FAILED | (FMU_FMI == 3 ? INSTANTIATED : 0)
};

/* Categories of messages, as bits; the names as in modelDescription.xml. */
enum { LOG_DISCARD = 2, LOG_EVENT = 4, LOG_ALL = 7 };
static const char *const category_names[] = {"logStatusError", "logStatusDiscard", "logEvents"};
enum { N_CATEGORIES = sizeof category_names / sizeof category_names[0] };

Status refuse(Instance *m, Status status, const char *format, ...) {
	char text[MAX_MESSAGE];
	int n = snprintf(text, sizeof text, "%s: ", m->function), discard = status == StatusDiscard;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text + n, sizeof text - (size_t)n, format, arguments);
	va_end(arguments);
	if (!discard) m->s.mode = FAILED;
	/* Reasons are not held back, except by FMI 3.0, which wants it for Discard. */
	if (!discard || FMU_FMI == 2 || m->logged & LOG_DISCARD)
		deliver(&m->callbacks, m->name, status, category_names[discard], text);
	return status;
}

#define FAIL(m, ...) return refuse(m, StatusError, __VA_ARGS__)

static void event(const Instance *m, const char *format, double value) {
	char text[MAX_MESSAGE];
	if (!(m->logged & LOG_EVENT)) return;
	snprintf(text, sizeof text, format, value);
	deliver(&m->callbacks, m->name, StatusOK, category_names[2], text);
}

static const char *mode_name(int mode) {
	switch (mode) {
	case INSTANTIATED: return "before initialization";
	case INITIALIZATION: return "in initialization mode";
	case STEPPED: return "between steps";
	case TERMINATED: return "after termination";
	default: return "after an error";
	}
}

/* ENTER refuses a call in a wrong state. */
#define ENTER(m, modes)                                                                           \
	do {                                                                                          \
		if (!((m)->s.mode & (modes))) FAIL(m, "not allowed %s", mode_name((m)->s.mode));          \
	} while (0)

#define REQUIRE(m, condition, what)                                                               \
	do {                                                                                          \
		if (!(condition)) FAIL(m, what);                                                          \
	} while (0)

/* CHECK refuses the call with the reason that refresh or initial gave. */
#define CHECK(m, wrong)                                                                           \
	do {                                                                                          \
		if (wrong) FAIL(m, "%s", wrong);                                                          \
	} while (0)

static const Real reals[] = {FMU_REALS};
static const Integer integers[] = {FMU_INTEGERS {0, 0, 0}};
#if FMU_STRINGS
static const char *const texts[] = {FMU_TEXTS};
#endif
enum { N_REALS = sizeof reals / sizeof reals[0], N_INTEGERS = sizeof integers / sizeof integers[0] - 1 };

/* real gives the place of a real variable. */
static double *real(Instance *m, unsigned vr) {
	int i = reals[vr].index;
	switch (reals[vr].role) {
	case INPUT: return &m->s.u[0][i];
	case STATE: return &m->s.x[i];
	case DERIVATIVE: return &m->s.dx[i];
	case CALCULATED: return &m->s.y[i];
	case INDEPENDENT: return &m->s.time;
	default: return &m->s.p[i];
	}
}

static int finite_all(const double v[], int n) {
	for (int i = 0; i < n; i++)
		if (!isfinite(v[i])) return 0;
	return 1;
}

void polynomial(double u[][MAX_INPUTS], int order, double tau, double value[]) {
	for (int i = 0; i < FMU_NU; i++) {
		double v = u[order][i]; /* Horner, highest derivative first */
		for (int j = order; j > 0; j--) v = u[j - 1][i] + v * tau / j;
		value[i] = v;
	}
}

/* set_defaults puts the instance into the state after its instantiation. */
static void set_defaults(Instance *m) {
	memset(&m->s, 0, sizeof m->s);
	m->s.mode = INSTANTIATED;
	for (unsigned i = 0; i < N_REALS; i++)
		if (reals[i].role == PARAMETER || reals[i].role == INPUT) *real(m, i) = reals[i].start;
	for (int i = 0; i < N_INTEGERS; i++) m->s.n[i] = integers[i].start;
#if FMU_STRINGS
	for (int i = 0; i < FMU_STRINGS; i++) strncpy(m->s.text[i], texts[i], MAX_TEXT - 1);
#endif
	m->data_of_p = NULL;
}

/* resize gives an array room for n numbers, without keeping them. */
static int resize(Instance *m, double **array, size_t n) {
	release(&m->callbacks, *array);
	*array = n ? allocate(&m->callbacks, n * sizeof **array) : NULL;
	return n == 0 || *array;
}

static const char out_of_memory[] = "out of memory";

/* keep makes room for n kept numbers, without keeping them. */
static const char *keep(Instance *m, size_t n) {
	if (n == m->n_kept) return NULL;
	m->n_kept = 0;
	if (!resize(m, &m->kept, n) || !resize(m, &m->before, n)) return out_of_memory;
	m->n_kept = n;
	return NULL;
}

/* prepare makes data that of the parameters and gives the states at the start. */
static const char *prepare(Instance *m, double x[]) {
	size_t scratch = 0;
	m->n_needed = 0;
	const char *wrong = model.extent ? model.extent(m, &m->n_needed, &scratch) : NULL;
	memset(x, 0, sizeof m->s.x);
	m->data_of_p = NULL;
	if (wrong) return wrong;
	if (scratch != m->n_scratch) {
		m->n_scratch = 0;
		if (!resize(m, &m->scratch, scratch)) return out_of_memory;
		m->n_scratch = scratch;
	}
	wrong = model.prepare(m, x);
	if (!wrong) m->data_of_p = m->s.p;
	return wrong;
}

/* initial computes all that follows from parameters and inputs at the start. */
static const char *initial(Instance *m) {
	const char *wrong = prepare(m, m->s.x);
	if (!wrong) wrong = keep(m, m->n_needed);
	if (wrong) return wrong;
	if (model.begin) model.begin(m);
	memcpy(m->s.w, m->s.u, sizeof m->s.w);
	model.evaluate(m, m->s.x, m->s.w[0], m->s.dx, m->s.y);
	return NULL;
}

/* refresh brings what can be read up to date, also data after a restored state. */
static const char *refresh(Instance *m) {
	double x[MAX_STATES];
	if (m->s.mode == INITIALIZATION) return initial(m);
	const char *wrong = m->data_of_p ? NULL : prepare(m, x);
	return !wrong && m->n_kept != m->n_needed ? "there are no states of these parameters" : wrong;
}

Status fmu_logging(Instance *m, int on, size_t n, const char *const categories[]) {
	REQUIRE(m, n == 0 || categories, "no categories given");
	int chosen = n ? 0 : LOG_ALL, before = FMU_FMI == 3 ? m->logged : 0;
	for (size_t i = 0; i < n; i++) {
		int found = 0;
		for (int k = 0; k < N_CATEGORIES; k++)
			if (categories[i] && strcmp(categories[i], category_names[k]) == 0) found = 1 << k;
		if (!found) FAIL(m, "there is no category \"%s\"", categories[i] ? categories[i] : "(null)");
		chosen |= found;
	}
	m->logged = on ? before | chosen : before & ~chosen;
	return StatusOK;
}

Instance *fmu_new(const Callbacks *f, const char *function, const char *name, const char *guid, const char *wrong, int logging) {
	if (!name) name = "";
	if (name[strspn(name, " \t")] == 0) wrong = "the instance has no name";
	else if (!wrong && (!guid || strcmp(guid, FMU_GUID) != 0)) wrong = "the " GUID_NAME " is not that of this library, " FMU_GUID;
	if (wrong) {
		char text[MAX_MESSAGE];
		snprintf(text, sizeof text, "%s: %s", function, wrong);
		deliver(f, name, StatusError, category_names[0], text);
		return NULL;
	}
	Instance *m = allocate(f, sizeof *m);
	if (!m) return NULL;
	memset(m, 0, sizeof *m);
	m->callbacks = *f; /* the structure itself need not outlive this call */
	m->data = allocate(f, model.data_size ? model.data_size : 1);
	m->name = allocate(f, strlen(name) + 1);
	if (!m->data || !m->name) {
		fmu_free(m);
		return NULL;
	}
	strcpy(m->name, name);
	m->function = function;
	m->logged = logging ? LOG_ALL : 0;
	set_defaults(m);
	event(m, "instantiated, %g real variables", N_REALS);
	return m;
}

void fmu_free(Instance *m) {
	Callbacks f = m->callbacks;
	release(&f, m->data);
	release(&f, m->kept);
	release(&f, m->before);
	release(&f, m->scratch);
	release(&f, m->name);
	release(&f, m);
}

Status fmu_experiment(Instance *m, int toleranceDefined, double tolerance, double startTime, int stopTimeDefined,
                      double stopTime) {
	ENTER(m, INSTANTIATED);
	REQUIRE(m, !toleranceDefined || (isfinite(tolerance) && tolerance > 0), "the tolerance is not positive and finite");
	REQUIRE(m, isfinite(startTime), "the start time is not finite");
	REQUIRE(m, !stopTimeDefined || (isfinite(stopTime) && stopTime >= startTime), "the stop time is not finite or before the start");
	m->s.start = m->s.time = startTime;
	m->s.has_stop = stopTimeDefined != 0;
	m->s.stop = stopTimeDefined ? stopTime : 0;
	m->s.tolerance = toleranceDefined ? tolerance : 0; /* for models that are solved to one */
	m->s.has_experiment = 1;
	return StatusOK;
}

Status fmu_initialize(Instance *m) {
	ENTER(m, INSTANTIATED);
	REQUIRE(m, m->s.has_experiment, "fmi2SetupExperiment was not called");
	const char *wrong = initial(m);
	CHECK(m, wrong);
	m->s.mode = INITIALIZATION;
	return StatusOK;
}

Status fmu_start(Instance *m) {
	ENTER(m, INITIALIZATION);
	const char *wrong = initial(m);
	CHECK(m, wrong);
	REQUIRE(m, finite_all(m->s.y, FMU_NY) && finite_all(m->s.dx, FMU_NX), "an output or derivative is not finite at the start");
	m->s.mode = STEPPED;
	event(m, "initialized at t = %.17g", m->s.time);
	return StatusOK;
}

Status fmu_terminate(Instance *m) {
	ENTER(m, STEPPED);
	m->s.mode = TERMINATED;
	return StatusOK;
}

Status fmu_reset(Instance *m) {
	set_defaults(m);
	return StatusOK;
}

/* Reading. */

Status fmu_get_reals(Instance *m, const unsigned vr[], size_t nvr, double value[]) {
	ENTER(m, READABLE);
	REQUIRE(m, nvr == 0 || (vr && value), "an array is missing");
	if (m->s.mode == INITIALIZATION) {
		const char *wrong = refresh(m);
		CHECK(m, wrong);
	}
	for (size_t i = 0; i < nvr; i++) {
		if (vr[i] >= N_REALS) FAIL(m, "there is no real variable with value reference %u", vr[i]);
		value[i] = *real(m, vr[i]);
	}
	return StatusOK;
}

/* integer gives the index of an integer, or -1. In FMI 3.0 enumerations, which are wide, have functions of their own. */
static int integer(unsigned vr, int wide) {
	unsigned i = vr - FIRST_INTEGER;
	return i < N_INTEGERS && (FMU_FMI == 2 || integers[i].enumeration == wide) ? (int)i : -1;
}

#define NO_INTEGER(m, vr, wide)                                                                   \
	FAIL(m, "there is no %s variable with value reference %u", wide ? "enumeration" : "integer", vr)

Status fmu_get_integers(Instance *m, const unsigned vr[], size_t nvr, void *value, int wide) {
	ENTER(m, READABLE);
	REQUIRE(m, nvr == 0 || (vr && value), "an array is missing");
	for (size_t i = 0; i < nvr; i++) {
		int k = integer(vr[i], wide);
		if (k < 0) NO_INTEGER(m, vr[i], wide);
		if (wide) ((int64_t *)value)[i] = m->s.n[k];
		else ((int *)value)[i] = m->s.n[k];
	}
	return StatusOK;
}

Status fmu_get_texts(Instance *m, const unsigned vr[], size_t nvr, const char *value[]) {
	ENTER(m, READABLE);
	REQUIRE(m, nvr == 0 || (vr && value), "an array is missing");
	for (size_t i = 0; i < nvr; i++) {
		if (vr[i] - FIRST_TEXT >= FMU_STRINGS) FAIL(m, "there is no string variable with value reference %u", vr[i]);
#if FMU_STRINGS
		value[i] = m->s.text[vr[i] - FIRST_TEXT];
#endif
	}
	return StatusOK;
}

/* Setting. A value that cannot be taken is discarded and leaves all as it was. */

Status fmu_set_reals(Instance *m, const unsigned vr[], size_t nvr, const double value[]) {
	ENTER(m, INSTANTIATED | INITIALIZATION | STEPPED);
	REQUIRE(m, nvr == 0 || (vr && value), "an array is missing");
	for (size_t i = 0; i < nvr; i++) {
		if (vr[i] >= N_REALS) FAIL(m, "there is no real variable with value reference %u", vr[i]);
		Role role = reals[vr[i]].role;
		if (role != INPUT && role != PARAMETER) FAIL(m, REF("r") " is calculated and cannot be set", vr[i]);
		if (role == PARAMETER && m->s.mode == STEPPED)
			FAIL(m, "the parameter " REF("r") " is fixed after initialization", vr[i]);
		if (!isfinite(value[i]))
			return refuse(m, StatusDiscard, "the value %g of " REF("r") " is not finite", value[i], vr[i]);
	}
	for (size_t i = 0; i < nvr; i++) {
		*real(m, vr[i]) = value[i];
		if (reals[vr[i]].role == PARAMETER) m->data_of_p = NULL;
	}
	return StatusOK;
}

Status fmu_set_integers(Instance *m, const unsigned vr[], size_t nvr, const void *value, int wide) {
	ENTER(m, INSTANTIATED | INITIALIZATION | STEPPED);
	REQUIRE(m, nvr == 0 || (vr && value), "an array is missing");
	for (int store = 0; store < 2; store++)
		for (size_t i = 0; i < nvr; i++) {
			int k = integer(vr[i], wide);
			int64_t v = wide ? ((const int64_t *)value)[i] : ((const int *)value)[i];
			if (k < 0) NO_INTEGER(m, vr[i], wide);
			if (m->s.mode == STEPPED) FAIL(m, "the parameter " REF("i") " is fixed after initialization", vr[i]);
			if (v < integers[k].min || v > INT_MAX)
				return refuse(m, StatusDiscard, REF("i") " must be at least %d%s, not %lld", vr[i], integers[k].min,
				              wide ? " and of 32 bits" : "", (long long)v);
			if (!store) continue;
			m->s.n[k] = (int)v;
			m->data_of_p = NULL;
		}
	return StatusOK;
}

Status fmu_set_texts(Instance *m, const unsigned vr[], size_t nvr, const char *const value[]) {
	ENTER(m, INSTANTIATED | INITIALIZATION | STEPPED);
	REQUIRE(m, nvr == 0 || (vr && value), "an array is missing");
	for (size_t i = 0; i < nvr; i++) {
		if (vr[i] - FIRST_TEXT >= FMU_STRINGS) FAIL(m, "there is no string variable with value reference %u", vr[i]);
		if (m->s.mode == STEPPED)
			FAIL(m, "the parameter " REF("s") " is fixed after initialization", vr[i]);
		REQUIRE(m, value[i], "a value is missing");
		if (strlen(value[i]) >= MAX_TEXT)
			return refuse(m, StatusDiscard, REF("s") " must be shorter than %d bytes", vr[i], MAX_TEXT);
	}
#if FMU_STRINGS
	for (size_t i = 0; i < nvr; i++) {
		memset(m->s.text[vr[i] - FIRST_TEXT], 0, MAX_TEXT); /* equal states are to have equal bytes */
		strcpy(m->s.text[vr[i] - FIRST_TEXT], value[i]);
	}
#endif
	return StatusOK;
}

/* Steps. */

Status fmu_step(Instance *m, double t, double h, int no_restore) {
	ENTER(m, STEPPED);
	(void)no_restore; /* of use to misbehave.c */
	if (!(h > 0) || !isfinite(h)) FAIL(m, "the step size %.17g is not positive and finite", h);
	double slack = 1e-9 * fmax(h, fmax(fabs(t), fabs(m->s.time)));
	if (!(fabs(t - m->s.time) <= slack))
		FAIL(m, "the step starts at t = %.17g, the last one ended at %.17g", t, m->s.time);
	if (m->s.has_stop && t + h > m->s.stop + slack)
		FAIL(m, "the step ends at t = %.17g, after the stop time %.17g", t + h, m->s.stop);
	const char *wrong = refresh(m);
	CHECK(m, wrong);

	double x[MAX_STATES], dx[MAX_STATES], y[MAX_OUTPUTS], end[MAX_INPUTS], w[ORDERS][MAX_INPUTS] = {{0}};
	memcpy(x, m->s.x, sizeof x);
	memcpy(dx, m->s.dx, sizeof dx);
	memcpy(y, m->s.y, sizeof y);
	/* A step size which differs from the last one only by the rounding of two
	 * times is the same step size: lti.c then has its matrices at hand. The size
	 * in force is part of the saved state, so that replays stay bitwise equal. */
	if (m->s.h == 0 || fabs(h - m->s.h) > 4 * DBL_EPSILON * fmax(fabs(t), fabs(t + h))) m->s.h = h;
	double started = m->s.time;
	if (m->n_kept) memcpy(m->before, m->kept, m->n_kept * sizeof *m->kept);
	m->refused = NULL;
	model.step(m, m->s.h, x);
	double sampled = model.sampled ? model.sampled(m, m->s.h) : m->s.h;
	for (int j = 0; j <= m->s.order; j++) polynomial(m->s.u + j, m->s.order - j, sampled, w[j]);
	polynomial(m->s.u, m->s.order, m->s.h, end);
	m->s.time = t + h; /* what the model reads of the instance is now of the end */
	if (!m->refused) model.evaluate(m, x, w[0], dx, y);
	int finite = finite_all(x, FMU_NX) && finite_all(dx, FMU_NX) && finite_all(y, FMU_NY) && finite_all(w[0], FMU_NU) &&
	             finite_all(end, FMU_NU);
	if (m->refused || !finite) {
		m->s.time = started;
		if (m->n_kept) memcpy(m->kept, m->before, m->n_kept * sizeof *m->kept);
	}
	if (m->refused)
			return refuse(m, StatusDiscard, "the step from t = %.17g by %.17g: %s", t, h, m->refused);
	if (!finite) FAIL(m, "the step from t = %.17g by %.17g leads to values that are not finite", t, h);
	memcpy(m->s.x, x, sizeof x);
	memcpy(m->s.dx, dx, sizeof dx);
	memcpy(m->s.y, y, sizeof y);
	memcpy(m->s.w, w, sizeof w);
	memset(m->s.u, 0, sizeof m->s.u);
	memcpy(m->s.u[0], end, (size_t)FMU_NU * sizeof end[0]);
	m->s.order = 0;
	return StatusOK;
}

Status fmu_ask(Instance *m) {
	ENTER(m, STEPPED | TERMINATED);
	return StatusOK;
}

/* Input and output derivatives. */

Status fmu_set_input_derivatives(Instance *m, const unsigned vr[], size_t nvr, const int order[], const double value[]) {
	ENTER(m, INSTANTIATED | INITIALIZATION | STEPPED);
	REQUIRE(m, nvr == 0 || (vr && order && value), "an array is missing");
	for (size_t i = 0; i < nvr; i++) {
		if (vr[i] >= N_REALS || reals[vr[i]].role != INPUT)
			FAIL(m, "value reference %u is not that of an input", vr[i]);
		if (order[i] < 1 || order[i] > MAX_ORDER)
			FAIL(m, "order %d of " REF("r") " is not in 1..%d", order[i], vr[i], MAX_ORDER);
		if (!isfinite(value[i]))
			return refuse(m, StatusDiscard, "the value %g for " REF("r") " is not finite", value[i], vr[i]);
	}
	for (size_t i = 0; i < nvr; i++) {
		m->s.u[order[i]][real(m, vr[i]) - m->s.u[0]] = value[i];
		if (order[i] > m->s.order) m->s.order = order[i];
	}
	return StatusOK;
}

/* derivative_of gives the order-th time derivative, order >= 1, of states or
 * outputs: x' = f, x(k) = A x(k-1) + B u(k-1), y(k) = C x(k) + D u(k). Beyond the
 * first order this holds for linear models only, which alone offer more. */
static void derivatives_of(Instance *m, const Linear *l, int order, double x[], double y[]) {
	memcpy(x, m->s.dx, sizeof m->s.dx);
	for (int k = 2; k <= order; k++) {
		double next[MAX_STATES] = {0};
		for (int i = 0; i < FMU_NX; i++) {
			for (int j = 0; j < FMU_NX; j++) next[i] += l->A[i][j] * x[j];
			for (int j = 0; j < FMU_NU; j++) next[i] += l->B[i][j] * m->s.w[k - 1][j];
		}
		memcpy(x, next, sizeof next);
	}
	for (int i = 0; i < FMU_NY; i++) {
		y[i] = 0;
		for (int j = 0; j < FMU_NX; j++) y[i] += l->C[i][j] * x[j];
		for (int j = 0; j < FMU_NU; j++) y[i] += l->D[i][j] * m->s.w[order][j];
	}
}

Status fmu_get_output_derivatives(Instance *m, const unsigned vr[], size_t nvr, const int order[], double value[]) {
	ENTER(m, STEPPED | TERMINATED | FAILED);
	REQUIRE(m, nvr == 0 || (vr && order && value), "an array is missing");
	const char *wrong = refresh(m);
	CHECK(m, wrong);
	Linear l;
	memset(&l, 0, sizeof l);
	model.jacobian(m, m->s.x, m->s.w[0], &l);
	for (size_t i = 0; i < nvr; i++) {
		double x[MAX_STATES], y[MAX_OUTPUTS];
		if (vr[i] >= N_REALS || (reals[vr[i]].role != STATE && reals[vr[i]].role != CALCULATED))
			FAIL(m, "value reference %u is not that of an output", vr[i]);
		if (order[i] < 1 || order[i] > FMU_OUTPUT_ORDER)
			FAIL(m, "order %d of " REF("r") " is not in 1..%d", order[i], vr[i], FMU_OUTPUT_ORDER);
		derivatives_of(m, &l, order[i], x, y);
		value[i] = reals[vr[i]].role == STATE ? x[real(m, vr[i]) - m->s.x] : y[real(m, vr[i]) - m->s.y];
	}
	return StatusOK;
}

/* Directional derivatives. */

/* partial gives the derivative of one unknown by one known at a point, or NaN if
 * the pair is not one of unknown and known. */
static double partial(const Linear *l, unsigned unknown, unsigned known) {
	int a = reals[unknown].index, b = reals[known].index, state = reals[known].role == STATE;
	if (!state && reals[known].role != INPUT) return NAN;
	switch (reals[unknown].role) {
	case STATE: return state && a == b;
	case DERIVATIVE: return state ? l->A[a][b] : l->B[a][b];
	case CALCULATED: return state ? l->C[a][b] : l->D[a][b];
	default: return NAN;
	}
}

/* by_parameter gives the derivative of the unknown by a parameter at the start,
 * from a central difference: parameters act through prepare, which is not
 * differentiated by hand. NaN if a shifted parameter is not allowed. */
static double by_parameter(Instance *m, unsigned unknown, unsigned known) {
	State saved = m->s;
	double *p = real(m, known), h = 6e-6 * fmax(fabs(*p), 1), side[2] = {NAN, NAN};
	double at[2] = {*p - h, *p + h};
	for (int i = 0; i < 2; i++) {
		*p = at[i];
		if (!initial(m)) side[i] = *real(m, unknown);
	}
	m->s = saved;
	m->data_of_p = NULL;
	return (side[1] - side[0]) / (at[1] - at[0]);
}

/* by_time gives the derivative of the unknown by time, with states and inputs held, from a central difference. */
static double by_time(Instance *m, const double u[], unsigned unknown) {
	double t = m->s.time, h = 1e-8 * fmax(fabs(t), 1), dx[2][MAX_STATES], y[2][MAX_OUTPUTS];
	int i = reals[unknown].index;
	for (int k = 0; k < 2; k++) {
		m->s.time = k ? t + h : t - h;
		model.evaluate(m, m->s.x, u, dx[k], y[k]);
	}
	m->s.time = t;
	switch (reals[unknown].role) {
	case STATE: return 0;
	case DERIVATIVE: return (dx[1][i] - dx[0][i]) / (2 * h);
	case CALCULATED: return (y[1][i] - y[0][i]) / (2 * h);
	default: return NAN;
	}
}

Status fmu_directional(Instance *m, const unsigned unknown[], size_t nUnknown, const unsigned known[], size_t nKnown,
                       const double dvKnown[], double dvUnknown[]) {
	ENTER(m, INITIALIZATION | STEPPED | TERMINATED | FAILED);
	REQUIRE(m, (nUnknown == 0 || (unknown && dvUnknown)) && (nKnown == 0 || (known && dvKnown)), "an array is missing");
	int initializing = m->s.mode == INITIALIZATION;
	const char *wrong = refresh(m);
	CHECK(m, wrong);
	Linear l;
	memset(&l, 0, sizeof l);
	/* With the inputs that are set: those at the end of the step until others are. */
	const double *u = model.sampled ? m->s.w[0] : m->s.u[0];
	model.jacobian(m, m->s.x, u, &l);
	for (size_t i = 0; i < nUnknown; i++) {
		if (unknown[i] >= N_REALS) FAIL(m, "there is no real variable with value reference %u", unknown[i]);
		double sum = 0;
		for (size_t j = 0; j < nKnown; j++) {
			if (known[j] >= N_REALS) FAIL(m, "there is no real variable with value reference %u", known[j]);
			Role a = reals[unknown[i]].role, b = reals[known[j]].role;
			double d;
			if (initializing && b == PARAMETER && a != INPUT && a != PARAMETER) d = by_parameter(m, unknown[i], known[j]);
			else if (initializing && b == STATE) d = NAN; /* states are unknowns there */
			else if (b == INDEPENDENT) d = by_time(m, u, unknown[i]);
			else d = partial(&l, unknown[i], known[j]);
			if (isnan(d))
				FAIL(m, REF("r") " has no derivative by " REF("r") " %s", unknown[i], known[j], mode_name(m->s.mode));
			sum += d * dvKnown[j];
		}
		dvUnknown[i] = sum;
	}
	wrong = refresh(m); /* after differences: data is that of the parameters again */
	CHECK(m, wrong);
	return StatusOK;
}

/* State: a handle is a Snapshot, its serial form a Header with the State and the
 * kept numbers behind. */

static const char magic[8] = "mstate3";

typedef struct {
	const Instance *owner;
	State s;
	size_t n;
	double kept[]; /* [n] */
} Snapshot;

typedef struct {
	char magic[8];
	char guid[sizeof FMU_GUID];
	unsigned size, checksum; /* of what stands behind */
} Header;

static unsigned checksum(const void *data, size_t n) { /* FNV-1a */
	const unsigned char *p = data;
	unsigned h = 2166136261u;
	for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 16777619u;
	return h;
}

static Snapshot *new_snapshot(Instance *m, size_t n) {
	Snapshot *s = allocate(&m->callbacks, sizeof *s + n * sizeof s->kept[0]);
	if (s) {
		s->owner = m;
		s->n = n;
	}
	return s;
}

Status fmu_get_state(Instance *m, void **state) {
	REQUIRE(m, state, "nowhere to put the state");
	Snapshot *s = *state;
	if (s) REQUIRE(m, s->owner == m, "the state to overwrite belongs to another instance");
	if (!s || s->n != m->n_kept) {
		Snapshot *other = new_snapshot(m, m->n_kept);
		REQUIRE(m, other, "out of memory");
		release(&m->callbacks, s);
		s = other;
	}
	s->s = m->s;
	if (s->n) memcpy(s->kept, m->kept, s->n * sizeof *s->kept);
	*state = s;
	return StatusOK;
}

Status fmu_set_state(Instance *m, void *state) {
	const Snapshot *s = state;
	REQUIRE(m, s && s->owner == m, "the state belongs to another instance");
	const char *wrong = keep(m, s->n);
	CHECK(m, wrong);
	if (memcmp(m->s.p, s->s.p, sizeof m->s.p) != 0 || memcmp(m->s.n, s->s.n, sizeof m->s.n) != 0 ||
	    m->s.tolerance != s->s.tolerance)
		m->data_of_p = NULL;
	m->s = s->s;
	if (s->n) memcpy(m->kept, s->kept, s->n * sizeof *s->kept);
	m->refused = NULL;
	return StatusOK;
}

Status fmu_free_state(Instance *m, void **state) {
	if (!state || !*state) return StatusOK;
	REQUIRE(m, ((Snapshot *)*state)->owner == m, "the state belongs to another instance");
	release(&m->callbacks, *state);
	*state = NULL;
	return StatusOK;
}

/* serial_size gives the bytes behind the header. */
static size_t serial_size(size_t n) { return sizeof(State) + n * sizeof(double); }

Status fmu_state_size(Instance *m, void *state, size_t *size) {
	const Snapshot *s = state;
	REQUIRE(m, s && s->owner == m && size, "the state belongs to another instance");
	*size = sizeof(Header) + serial_size(s->n);
	return StatusOK;
}

Status fmu_serialize(Instance *m, void *state, char bytes[], size_t size) {
	const Snapshot *s = state;
	REQUIRE(m, s && s->owner == m, "the state belongs to another instance");
	REQUIRE(m, bytes && size >= sizeof(Header) + serial_size(s->n), "the buffer is too small");
	Header h;
	char *states = bytes + sizeof h, *kept = states + sizeof s->s;
	memcpy(states, &s->s, sizeof s->s);
	if (s->n) memcpy(kept, s->kept, s->n * sizeof *s->kept);
	memset(&h, 0, sizeof h);
	memcpy(h.magic, magic, sizeof magic);
	memcpy(h.guid, FMU_GUID, sizeof h.guid);
	h.size = (unsigned)serial_size(s->n);
	h.checksum = checksum(states, serial_size(s->n));
	memcpy(bytes, &h, sizeof h);
	return StatusOK;
}

Status fmu_deserialize(Instance *m, const char bytes[], size_t size, void **state) {
	REQUIRE(m, bytes && state, "an argument is missing");
	Header h;
	size_t least = sizeof h + serial_size(0);
	REQUIRE(m, size >= least && (size - least) % sizeof(double) == 0 && (model.extent || size == least),
	        "the size is not that of a state of this FMU");
	memcpy(&h, bytes, sizeof h);
	REQUIRE(m, memcmp(h.magic, magic, sizeof magic) == 0 && memcmp(h.guid, FMU_GUID, sizeof h.guid) == 0 &&
	        h.size == size - sizeof h && h.checksum == checksum(bytes + sizeof h, size - sizeof h),
	        "these bytes are not a state of this FMU");
	Snapshot *s = new_snapshot(m, (size - least) / sizeof(double));
	REQUIRE(m, s, "out of memory");
	memcpy(&s->s, bytes + sizeof h, sizeof s->s);
	if (s->n) memcpy(s->kept, bytes + least, s->n * sizeof *s->kept);
	*state = s;
	return StatusOK;
}
