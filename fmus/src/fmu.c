/* The functions of FMI 2.0 for Co-Simulation on top of one Model.
 *
 * Calls out of order, values that are not finite, times that do not meet and
 * handles of others are refused with a message to the logger. The order of
 * calls is that of the state machine in section 4.2.4 of the standard, with one
 * tolerance: inputs may also be set before initialization, as many masters do.
 *
 * Outputs are those at the end of the last step, under the input polynomial of
 * that step, at its end or where Model.sampled says; inputs set afterwards belong to the next step and change nothing
 * that can be read before it. A step uses up the input derivatives. Inputs not
 * set again stay at the value which the polynomial had reached.
 *
 * Compiled with FMU_PLAIN the library has no state handling, no derivatives of
 * any kind and no input interpolation. */
#include "fmu.h"
#ifdef FMU_WRAPPED
#include "wrap.h" /* another file exports functions in front of these */
#endif

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The states of the state machine, as bits. Steps are synchronous, and one that
 * is discarded leaves all as it was before, so that the other states of the
 * standard are not told apart. */
enum { INSTANTIATED = 1, INITIALIZATION = 2, STEPPED = 4, TERMINATED = 8, FAILED = 16, ANY = 31 };

/* Categories of messages, as bits; the names as in modelDescription.xml. */
enum { LOG_ERROR = 1, LOG_DISCARD = 2, LOG_EVENT = 4 };
static const char *const category_names[] = {"logStatusError", "logStatusDiscard", "logEvents"};
enum { N_CATEGORIES = sizeof category_names / sizeof category_names[0] };

/* LOG passes a message on. Reasons of a failure are never held back by the
 * debug switch; the master decides whether to show them. */
#define LOG(m, status, category, ...)                                                             \
	do {                                                                                          \
		if ((m)->callbacks.logger)                                                                \
			(m)->callbacks.logger((m)->callbacks.componentEnvironment, (m)->name, status,         \
			                      category, __VA_ARGS__);                                         \
	} while (0)

#define FAIL(m, ...)                                                                              \
	do {                                                                                          \
		(m)->s.mode = FAILED;                                                                     \
		LOG(m, fmi2Error, category_names[0], __VA_ARGS__);                                        \
		return fmi2Error;                                                                         \
	} while (0)

#define EVENT(m, ...)                                                                             \
	do {                                                                                          \
		if ((m)->debug && ((m)->debug_categories & LOG_EVENT))                                    \
			LOG(m, fmi2OK, category_names[2], __VA_ARGS__);                                       \
	} while (0)

static const char *mode_name(int mode) {
	switch (mode) {
	case INSTANTIATED: return "before initialization";
	case INITIALIZATION: return "in initialization mode";
	case STEPPED: return "between steps";
	case TERMINATED: return "after fmi2Terminate";
	default: return "after an error";
	}
}

/* ENTER gets the instance of a call and refuses the call in a wrong state. */
#define ENTER(m, c, function, modes)                                                              \
	Instance *m = c;                                                                              \
	if (!m) return fmi2Error;                                                                     \
	if (!(m->s.mode & (modes))) FAIL(m, function ": not allowed %s", mode_name(m->s.mode))

#define REQUIRE(m, condition, function, what)                                                     \
	do {                                                                                          \
		if (!(condition)) FAIL(m, function ": " what);                                            \
	} while (0)

/* CHECK refuses the call with the reason that refresh or initial gave. */
#define CHECK(m, function, wrong)                                                                 \
	do {                                                                                          \
		if (wrong) FAIL(m, function ": %s", wrong);                                               \
	} while (0)

static void *allocate(const fmi2CallbackFunctions *f, size_t size) {
	return f->allocateMemory ? f->allocateMemory(1, size) : calloc(1, size);
}

static void release(const fmi2CallbackFunctions *f, void *p) {
	if (!p) return;
	if (f->freeMemory) f->freeMemory(p);
	else free(p);
}

static const Real reals[] = {FMU_REALS};
static const Integer integers[] = {FMU_INTEGERS {0, 0}};
#if FMU_STRINGS
static const char *const texts[] = {FMU_TEXTS};
#endif
enum { N_REALS = sizeof reals / sizeof reals[0], N_INTEGERS = sizeof integers / sizeof integers[0] - 1 };

/* real gives the place of a real variable. */
static double *real(Instance *m, fmi2ValueReference vr) {
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

/* set_defaults puts the instance into the state after fmi2Instantiate. */
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

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean loggingOn, size_t nCategories,
                               const fmi2String categories[]) {
	ENTER(m, c, "fmi2SetDebugLogging", ANY);
	REQUIRE(m, nCategories == 0 || categories, "fmi2SetDebugLogging", "no categories given");
	int chosen = nCategories ? 0 : LOG_ERROR | LOG_DISCARD | LOG_EVENT;
	for (size_t i = 0; i < nCategories; i++) {
		int found = 0;
		for (int k = 0; k < N_CATEGORIES; k++)
			if (categories[i] && strcmp(categories[i], category_names[k]) == 0) found = 1 << k;
		if (!found)
			FAIL(m, "fmi2SetDebugLogging: there is no category \"%s\"",
			     categories[i] ? categories[i] : "(null)");
		chosen |= found;
	}
	m->debug = loggingOn != 0;
	m->debug_categories = chosen;
	return fmi2OK;
}

fmi2Component fmi2Instantiate(fmi2String instanceName, fmi2Type fmuType, fmi2String guid,
                              fmi2String resourceLocation, const fmi2CallbackFunctions *functions,
                              fmi2Boolean visible, fmi2Boolean loggingOn) {
	(void)resourceLocation;
	(void)visible;
	if (!functions) return NULL;
	const char *wrong = NULL, *name = instanceName ? instanceName : "";
	if (name[strspn(name, " \t")] == 0) wrong = "the instance has no name";
	else if (fmuType != fmi2CoSimulation) wrong = "only co-simulation is offered";
	else if (!guid || strcmp(guid, FMU_GUID) != 0) wrong = "the GUID is not that of this library, " FMU_GUID;
	if (wrong) {
		if (functions->logger)
			functions->logger(functions->componentEnvironment, name, fmi2Error, category_names[0],
			                  "fmi2Instantiate: %s", wrong);
		return NULL;
	}
	Instance *m = allocate(functions, sizeof *m);
	if (!m) return NULL;
	memset(m, 0, sizeof *m);
	m->callbacks = *functions; /* the structure itself need not outlive this call */
	m->data = allocate(functions, model.data_size ? model.data_size : 1);
	m->name = allocate(functions, strlen(name) + 1);
	if (!m->data || !m->name) {
		fmi2FreeInstance(m);
		return NULL;
	}
	strcpy(m->name, name);
	m->debug = loggingOn != 0;
	m->debug_categories = LOG_ERROR | LOG_DISCARD | LOG_EVENT;
	set_defaults(m);
	EVENT(m, "instantiated, %u real variables", (unsigned)N_REALS);
	return m;
}

void fmi2FreeInstance(fmi2Component c) {
	Instance *m = c;
	if (!m) return;
	fmi2CallbackFunctions f = m->callbacks;
	release(&f, m->data);
	release(&f, m->kept);
	release(&f, m->before);
	release(&f, m->scratch);
	release(&f, m->name);
	release(&f, m);
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean toleranceDefined, fmi2Real tolerance,
                               fmi2Real startTime, fmi2Boolean stopTimeDefined, fmi2Real stopTime) {
	ENTER(m, c, "fmi2SetupExperiment", INSTANTIATED);
	REQUIRE(m, !toleranceDefined || (isfinite(tolerance) && tolerance > 0),
	        "fmi2SetupExperiment", "the tolerance is not positive and finite");
	REQUIRE(m, isfinite(startTime), "fmi2SetupExperiment", "the start time is not finite");
	REQUIRE(m, !stopTimeDefined || (isfinite(stopTime) && stopTime >= startTime),
	        "fmi2SetupExperiment", "the stop time is not finite or before the start");
	m->s.start = m->s.time = startTime;
	m->s.has_stop = stopTimeDefined != 0;
	m->s.stop = stopTimeDefined ? stopTime : 0;
	m->s.tolerance = toleranceDefined ? tolerance : 0; /* for models that are solved to one */
	m->s.has_experiment = 1;
	return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c) {
	ENTER(m, c, "fmi2EnterInitializationMode", INSTANTIATED);
	REQUIRE(m, m->s.has_experiment, "fmi2EnterInitializationMode", "fmi2SetupExperiment was not called");
	const char *wrong = initial(m);
	CHECK(m, "fmi2EnterInitializationMode", wrong);
	m->s.mode = INITIALIZATION;
	return fmi2OK;
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c) {
	ENTER(m, c, "fmi2ExitInitializationMode", INITIALIZATION);
	const char *wrong = initial(m);
	CHECK(m, "fmi2ExitInitializationMode", wrong);
	REQUIRE(m, finite_all(m->s.y, FMU_NY) && finite_all(m->s.dx, FMU_NX),
	        "fmi2ExitInitializationMode", "an output or derivative is not finite at the start");
	m->s.mode = STEPPED;
	EVENT(m, "initialized at t = %.17g", m->s.time);
	return fmi2OK;
}

fmi2Status fmi2Terminate(fmi2Component c) {
	ENTER(m, c, "fmi2Terminate", STEPPED);
	m->s.mode = TERMINATED;
	return fmi2OK;
}

fmi2Status fmi2Reset(fmi2Component c) {
	ENTER(m, c, "fmi2Reset", ANY);
	set_defaults(m);
	return fmi2OK;
}

/* Reading. */

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2Real value[]) {
	ENTER(m, c, "fmi2GetReal", INITIALIZATION | STEPPED | TERMINATED | FAILED);
	REQUIRE(m, nvr == 0 || (vr && value), "fmi2GetReal", "an array is missing");
	if (m->s.mode == INITIALIZATION) {
		const char *wrong = refresh(m);
		CHECK(m, "fmi2GetReal", wrong);
	}
	for (size_t i = 0; i < nvr; i++) {
		if (vr[i] >= N_REALS) FAIL(m, "fmi2GetReal: there is no real variable with value reference %u", vr[i]);
		value[i] = *real(m, vr[i]);
	}
	return fmi2OK;
}

fmi2Status fmi2GetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                          fmi2Integer value[]) {
	ENTER(m, c, "fmi2GetInteger", INITIALIZATION | STEPPED | TERMINATED | FAILED);
	REQUIRE(m, nvr == 0 || (vr && value), "fmi2GetInteger", "an array is missing");
	for (size_t i = 0; i < nvr; i++) {
		if (vr[i] >= N_INTEGERS)
			FAIL(m, "fmi2GetInteger: there is no integer variable with value reference %u", vr[i]);
		value[i] = m->s.n[vr[i]];
	}
	return fmi2OK;
}

fmi2Status fmi2GetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                          fmi2Boolean value[]) {
	ENTER(m, c, "fmi2GetBoolean", INITIALIZATION | STEPPED | TERMINATED | FAILED);
	(void)vr;
	(void)value;
	REQUIRE(m, nvr == 0, "fmi2GetBoolean", "there are no boolean variables");
	return fmi2OK;
}

fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                         fmi2String value[]) {
	ENTER(m, c, "fmi2GetString", INITIALIZATION | STEPPED | TERMINATED | FAILED);
	REQUIRE(m, nvr == 0 || (vr && value), "fmi2GetString", "an array is missing");
	for (size_t i = 0; i < nvr; i++) {
		if (vr[i] >= FMU_STRINGS) FAIL(m, "fmi2GetString: there is no string variable with value reference %u", vr[i]);
#if FMU_STRINGS
		value[i] = m->s.text[vr[i]];
#endif
	}
	return fmi2OK;
}

/* Setting. A value that cannot be taken is discarded and leaves all as it was. */

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                       const fmi2Real value[]) {
	ENTER(m, c, "fmi2SetReal", INSTANTIATED | INITIALIZATION | STEPPED);
	REQUIRE(m, nvr == 0 || (vr && value), "fmi2SetReal", "an array is missing");
	for (size_t i = 0; i < nvr; i++) {
		if (vr[i] >= N_REALS) FAIL(m, "fmi2SetReal: there is no real variable with value reference %u", vr[i]);
		Role role = reals[vr[i]].role;
		if (role != INPUT && role != PARAMETER) FAIL(m, "fmi2SetReal: #r%u# is calculated and cannot be set", vr[i]);
		if (role == PARAMETER && m->s.mode == STEPPED)
			FAIL(m, "fmi2SetReal: the parameter #r%u# is fixed after initialization", vr[i]);
		if (!isfinite(value[i])) {
			LOG(m, fmi2Discard, category_names[1], "fmi2SetReal: the value %g of #r%u# is not finite", value[i], vr[i]);
			return fmi2Discard;
		}
	}
	for (size_t i = 0; i < nvr; i++) {
		*real(m, vr[i]) = value[i];
		if (reals[vr[i]].role == PARAMETER) m->data_of_p = NULL;
	}
	return fmi2OK;
}

fmi2Status fmi2SetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                          const fmi2Integer value[]) {
	ENTER(m, c, "fmi2SetInteger", INSTANTIATED | INITIALIZATION | STEPPED);
	REQUIRE(m, nvr == 0 || (vr && value), "fmi2SetInteger", "an array is missing");
	for (size_t i = 0; i < nvr; i++) {
		if (vr[i] >= N_INTEGERS)
			FAIL(m, "fmi2SetInteger: there is no integer variable with value reference %u", vr[i]);
		if (m->s.mode == STEPPED)
			FAIL(m, "fmi2SetInteger: the parameter #i%u# is fixed after initialization", vr[i]);
		if (value[i] < integers[vr[i]].min) {
			LOG(m, fmi2Discard, category_names[1], "fmi2SetInteger: #i%u# must be at least %d, not %d", vr[i],
			    integers[vr[i]].min, value[i]);
			return fmi2Discard;
		}
	}
	for (size_t i = 0; i < nvr; i++) {
		m->s.n[vr[i]] = value[i];
		m->data_of_p = NULL;
	}
	return fmi2OK;
}

fmi2Status fmi2SetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                          const fmi2Boolean value[]) {
	ENTER(m, c, "fmi2SetBoolean", INSTANTIATED | INITIALIZATION | STEPPED);
	(void)vr;
	(void)value;
	REQUIRE(m, nvr == 0, "fmi2SetBoolean", "there are no boolean variables");
	return fmi2OK;
}

fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                         const fmi2String value[]) {
	ENTER(m, c, "fmi2SetString", INSTANTIATED | INITIALIZATION | STEPPED);
	REQUIRE(m, nvr == 0 || (vr && value), "fmi2SetString", "an array is missing");
	for (size_t i = 0; i < nvr; i++) {
		if (vr[i] >= FMU_STRINGS) FAIL(m, "fmi2SetString: there is no string variable with value reference %u", vr[i]);
		if (m->s.mode == STEPPED)
			FAIL(m, "fmi2SetString: the parameter #s%u# is fixed after initialization", vr[i]);
		REQUIRE(m, value[i], "fmi2SetString", "a value is missing");
		if (strlen(value[i]) >= MAX_TEXT) {
			LOG(m, fmi2Discard, category_names[1], "fmi2SetString: #s%u# must be shorter than %d bytes", vr[i], MAX_TEXT);
			return fmi2Discard;
		}
	}
#if FMU_STRINGS
	for (size_t i = 0; i < nvr; i++) {
		memset(m->s.text[vr[i]], 0, MAX_TEXT); /* equal states are to have equal bytes */
		strcpy(m->s.text[vr[i]], value[i]);
	}
#endif
	return fmi2OK;
}

/* Steps. */

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean noSetFMUStatePriorToCurrentPoint) {
	ENTER(m, c, "fmi2DoStep", STEPPED);
	(void)noSetFMUStatePriorToCurrentPoint;
	if (!(h > 0) || !isfinite(h)) FAIL(m, "fmi2DoStep: the step size %.17g is not positive and finite", h);
	double slack = 1e-9 * fmax(h, fmax(fabs(t), fabs(m->s.time)));
	if (!(fabs(t - m->s.time) <= slack))
		FAIL(m, "fmi2DoStep: the step starts at t = %.17g, the last one ended at %.17g", t, m->s.time);
	if (m->s.has_stop && t + h > m->s.stop + slack)
		FAIL(m, "fmi2DoStep: the step ends at t = %.17g, after the stop time %.17g", t + h, m->s.stop);
	const char *wrong = refresh(m);
	CHECK(m, "fmi2DoStep", wrong);

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
	if (m->refused) {
		LOG(m, fmi2Discard, category_names[1], "fmi2DoStep: the step from t = %.17g by %.17g: %s", t, h, m->refused);
		return fmi2Discard;
	}
	if (!finite) FAIL(m, "fmi2DoStep: the step from t = %.17g by %.17g leads to values that are not finite", t, h);
	memcpy(m->s.x, x, sizeof x);
	memcpy(m->s.dx, dx, sizeof dx);
	memcpy(m->s.y, y, sizeof y);
	memcpy(m->s.w, w, sizeof w);
	memset(m->s.u, 0, sizeof m->s.u);
	memcpy(m->s.u[0], end, (size_t)FMU_NU * sizeof end[0]);
	m->s.order = 0;
	return fmi2OK;
}

fmi2Status fmi2CancelStep(fmi2Component c) {
	ENTER(m, c, "fmi2CancelStep", 0);
	return fmi2Error;
}

fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Status *value) {
	ENTER(m, c, "fmi2GetStatus", STEPPED | TERMINATED);
	REQUIRE(m, value, "fmi2GetStatus", "nowhere to put the value");
	if (kind != fmi2DoStepStatus) return fmi2Discard;
	*value = m->refused ? fmi2Discard : fmi2OK; /* steps are synchronous: the last one is done */
	return fmi2OK;
}

fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value) {
	ENTER(m, c, "fmi2GetRealStatus", STEPPED | TERMINATED);
	REQUIRE(m, value, "fmi2GetRealStatus", "nowhere to put the value");
	if (kind != fmi2LastSuccessfulTime) return fmi2Discard;
	*value = m->s.time;
	return fmi2OK;
}

fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Integer *value) {
	ENTER(m, c, "fmi2GetIntegerStatus", STEPPED | TERMINATED);
	(void)kind;
	(void)value;
	return fmi2Discard;
}

fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value) {
	ENTER(m, c, "fmi2GetBooleanStatus", STEPPED | TERMINATED);
	REQUIRE(m, value, "fmi2GetBooleanStatus", "nowhere to put the value");
	if (kind != fmi2Terminated) return fmi2Discard;
	*value = fmi2False;
	return fmi2OK;
}

fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind kind, fmi2String *value) {
	ENTER(m, c, "fmi2GetStringStatus", STEPPED | TERMINATED);
	(void)kind;
	(void)value;
	return fmi2Discard;
}

#ifdef FMU_PLAIN

#define ABSENT(name, ...)                                                                         \
	fmi2Status name(fmi2Component c, __VA_ARGS__) {                                               \
		ENTER(m, c, #name, ANY);                                                                  \
		FAIL(m, "%s: not offered by this FMU", #name);                                            \
	}

ABSENT(fmi2GetFMUstate, fmi2FMUstate *a)
ABSENT(fmi2SetFMUstate, fmi2FMUstate a)
ABSENT(fmi2FreeFMUstate, fmi2FMUstate *a)
ABSENT(fmi2SerializedFMUstateSize, fmi2FMUstate a, size_t *b)
ABSENT(fmi2SerializeFMUstate, fmi2FMUstate a, fmi2Byte b[], size_t d)
ABSENT(fmi2DeSerializeFMUstate, const fmi2Byte a[], size_t b, fmi2FMUstate *d)
ABSENT(fmi2GetDirectionalDerivative, const fmi2ValueReference a[], size_t b, const fmi2ValueReference d[],
       size_t e, const fmi2Real f[], fmi2Real g[])
ABSENT(fmi2SetRealInputDerivatives, const fmi2ValueReference a[], size_t b, const fmi2Integer d[], const fmi2Real e[])
ABSENT(fmi2GetRealOutputDerivatives, const fmi2ValueReference a[], size_t b, const fmi2Integer d[], fmi2Real e[])

#else

/* Input and output derivatives. */

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                                       const fmi2Integer order[], const fmi2Real value[]) {
	ENTER(m, c, "fmi2SetRealInputDerivatives", INSTANTIATED | INITIALIZATION | STEPPED);
	REQUIRE(m, nvr == 0 || (vr && order && value), "fmi2SetRealInputDerivatives", "an array is missing");
	for (size_t i = 0; i < nvr; i++) {
		if (vr[i] >= N_REALS || reals[vr[i]].role != INPUT)
			FAIL(m, "fmi2SetRealInputDerivatives: value reference %u is not that of an input", vr[i]);
		if (order[i] < 1 || order[i] > MAX_ORDER)
			FAIL(m, "fmi2SetRealInputDerivatives: order %d of #r%u# is not in 1..%d", order[i], vr[i], MAX_ORDER);
		if (!isfinite(value[i])) {
			LOG(m, fmi2Discard, category_names[1],
			    "fmi2SetRealInputDerivatives: the value %g for #r%u# is not finite", value[i], vr[i]);
			return fmi2Discard;
		}
	}
	for (size_t i = 0; i < nvr; i++) {
		m->s.u[order[i]][real(m, vr[i]) - m->s.u[0]] = value[i];
		if (order[i] > m->s.order) m->s.order = order[i];
	}
	return fmi2OK;
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

fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                                        const fmi2Integer order[], fmi2Real value[]) {
	ENTER(m, c, "fmi2GetRealOutputDerivatives", STEPPED | TERMINATED | FAILED);
	REQUIRE(m, nvr == 0 || (vr && order && value), "fmi2GetRealOutputDerivatives", "an array is missing");
	const char *wrong = refresh(m);
	CHECK(m, "fmi2GetRealOutputDerivatives", wrong);
	Linear l;
	memset(&l, 0, sizeof l);
	model.jacobian(m, m->s.x, m->s.w[0], &l);
	for (size_t i = 0; i < nvr; i++) {
		double x[MAX_STATES], y[MAX_OUTPUTS];
		if (vr[i] >= N_REALS || (reals[vr[i]].role != STATE && reals[vr[i]].role != CALCULATED))
			FAIL(m, "fmi2GetRealOutputDerivatives: value reference %u is not that of an output", vr[i]);
		if (order[i] < 1 || order[i] > FMU_OUTPUT_ORDER)
			FAIL(m, "fmi2GetRealOutputDerivatives: order %d of #r%u# is not in 1..%d", order[i], vr[i],
			     FMU_OUTPUT_ORDER);
		derivatives_of(m, &l, order[i], x, y);
		value[i] = reals[vr[i]].role == STATE ? x[real(m, vr[i]) - m->s.x] : y[real(m, vr[i]) - m->s.y];
	}
	return fmi2OK;
}

/* Directional derivatives. */

/* partial gives the derivative of one unknown by one known at a point, or NaN if
 * the pair is not one of unknown and known. */
static double partial(const Linear *l, fmi2ValueReference unknown, fmi2ValueReference known) {
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
static double by_parameter(Instance *m, fmi2ValueReference unknown, fmi2ValueReference known) {
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

fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknown[], size_t nUnknown,
                                        const fmi2ValueReference known[], size_t nKnown,
                                        const fmi2Real dvKnown[], fmi2Real dvUnknown[]) {
	ENTER(m, c, "fmi2GetDirectionalDerivative", INITIALIZATION | STEPPED | TERMINATED | FAILED);
	REQUIRE(m, (nUnknown == 0 || (unknown && dvUnknown)) && (nKnown == 0 || (known && dvKnown)),
	        "fmi2GetDirectionalDerivative", "an array is missing");
	int initializing = m->s.mode == INITIALIZATION;
	const char *wrong = refresh(m);
	CHECK(m, "fmi2GetDirectionalDerivative", wrong);
	Linear l;
	memset(&l, 0, sizeof l);
	/* With the inputs that are set: those at the end of the step until others are. */
	model.jacobian(m, m->s.x, model.sampled ? m->s.w[0] : m->s.u[0], &l);
	for (size_t i = 0; i < nUnknown; i++) {
		if (unknown[i] >= N_REALS)
			FAIL(m, "fmi2GetDirectionalDerivative: there is no real variable with value reference %u", unknown[i]);
		double sum = 0;
		for (size_t j = 0; j < nKnown; j++) {
			if (known[j] >= N_REALS)
				FAIL(m, "fmi2GetDirectionalDerivative: there is no real variable with value reference %u", known[j]);
			Role a = reals[unknown[i]].role, b = reals[known[j]].role;
			double d;
			if (initializing && b == PARAMETER && a != INPUT && a != PARAMETER) d = by_parameter(m, unknown[i], known[j]);
			else if (initializing && b == STATE) d = NAN; /* states are unknowns there */
			else d = partial(&l, unknown[i], known[j]);
			if (isnan(d))
				FAIL(m, "fmi2GetDirectionalDerivative: #r%u# has no derivative by #r%u# %s", unknown[i], known[j],
				     mode_name(m->s.mode));
			sum += d * dvKnown[j];
		}
		dvUnknown[i] = sum;
	}
	wrong = refresh(m); /* after differences: data is that of the parameters again */
	CHECK(m, "fmi2GetDirectionalDerivative", wrong);
	return fmi2OK;
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

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state) {
	ENTER(m, c, "fmi2GetFMUstate", ANY);
	REQUIRE(m, state, "fmi2GetFMUstate", "nowhere to put the state");
	Snapshot *s = *state;
	if (s) REQUIRE(m, s->owner == m, "fmi2GetFMUstate", "the state to overwrite belongs to another instance");
	if (!s || s->n != m->n_kept) {
		Snapshot *other = new_snapshot(m, m->n_kept);
		REQUIRE(m, other, "fmi2GetFMUstate", "out of memory");
		release(&m->callbacks, s);
		s = other;
	}
	s->s = m->s;
	if (s->n) memcpy(s->kept, m->kept, s->n * sizeof *s->kept);
	*state = s;
	return fmi2OK;
}

fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state) {
	ENTER(m, c, "fmi2SetFMUstate", ANY);
	const Snapshot *s = state;
	REQUIRE(m, s && s->owner == m, "fmi2SetFMUstate", "the state belongs to another instance");
	const char *wrong = keep(m, s->n);
	CHECK(m, "fmi2SetFMUstate", wrong);
	if (memcmp(m->s.p, s->s.p, sizeof m->s.p) != 0 || memcmp(m->s.n, s->s.n, sizeof m->s.n) != 0 ||
	    m->s.tolerance != s->s.tolerance)
		m->data_of_p = NULL;
	m->s = s->s;
	if (s->n) memcpy(m->kept, s->kept, s->n * sizeof *s->kept);
	m->refused = NULL;
	return fmi2OK;
}

fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state) {
	ENTER(m, c, "fmi2FreeFMUstate", ANY);
	if (!state || !*state) return fmi2OK;
	REQUIRE(m, ((Snapshot *)*state)->owner == m, "fmi2FreeFMUstate", "the state belongs to another instance");
	release(&m->callbacks, *state);
	*state = NULL;
	return fmi2OK;
}

/* serial_size gives the bytes behind the header. */
static size_t serial_size(size_t n) { return sizeof(State) + n * sizeof(double); }

fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size) {
	ENTER(m, c, "fmi2SerializedFMUstateSize", ANY);
	const Snapshot *s = state;
	REQUIRE(m, s && s->owner == m && size, "fmi2SerializedFMUstateSize", "the state belongs to another instance");
	*size = sizeof(Header) + serial_size(s->n);
	return fmi2OK;
}

fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
	ENTER(m, c, "fmi2SerializeFMUstate", ANY);
	const Snapshot *s = state;
	REQUIRE(m, s && s->owner == m, "fmi2SerializeFMUstate", "the state belongs to another instance");
	REQUIRE(m, bytes && size >= sizeof(Header) + serial_size(s->n), "fmi2SerializeFMUstate", "the buffer is too small");
	Header h;
	fmi2Byte *states = bytes + sizeof h, *kept = states + sizeof s->s;
	memcpy(states, &s->s, sizeof s->s);
	if (s->n) memcpy(kept, s->kept, s->n * sizeof *s->kept);
	memset(&h, 0, sizeof h);
	memcpy(h.magic, magic, sizeof magic);
	memcpy(h.guid, FMU_GUID, sizeof h.guid);
	h.size = (unsigned)serial_size(s->n);
	h.checksum = checksum(states, serial_size(s->n));
	memcpy(bytes, &h, sizeof h);
	return fmi2OK;
}

fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state) {
	ENTER(m, c, "fmi2DeSerializeFMUstate", ANY);
	REQUIRE(m, bytes && state, "fmi2DeSerializeFMUstate", "an argument is missing");
	Header h;
	size_t least = sizeof h + serial_size(0);
	REQUIRE(m, size >= least && (size - least) % sizeof(double) == 0 && (model.extent || size == least),
	        "fmi2DeSerializeFMUstate", "the size is not that of a state of this FMU");
	memcpy(&h, bytes, sizeof h);
	REQUIRE(m, memcmp(h.magic, magic, sizeof magic) == 0 && memcmp(h.guid, FMU_GUID, sizeof h.guid) == 0 &&
	        h.size == size - sizeof h && h.checksum == checksum(bytes + sizeof h, size - sizeof h),
	        "fmi2DeSerializeFMUstate", "these bytes are not a state of this FMU");
	Snapshot *s = new_snapshot(m, (size - least) / sizeof(double));
	REQUIRE(m, s, "fmi2DeSerializeFMUstate", "out of memory");
	memcpy(&s->s, bytes + sizeof h, sizeof s->s);
	if (s->n) memcpy(s->kept, bytes + least, s->n * sizeof *s->kept);
	*state = s;
	return fmi2OK;
}

#endif
