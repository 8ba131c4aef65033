/* misbehave: an FMU that does one thing wrong, on purpose.
 *
 *     x' = -x + u,  z' = x,  w = x + d u        exact for polynomial inputs
 *
 * The parameter fault says what goes wrong, during in which function, at from
 * which time on and times how often (0: always); at2 and at3 hold back the second
 * and the third time. Everything else is as the standard wants it, so that what a
 * master makes of the fault can be seen. Faults that end, hang or damage the process
 * are in kill.c. guid.h holds the items of the enumerations and the start values of
 * the parameters; fmus/misbehave.go describes them.
 *
 * Variants, which differ before any parameter can be set:
 *   MISBEHAVE_REFUSE    there can be no instance
 *   MISBEHAVE_LOAD      loading and instantiation change the process
 *   MISBEHAVE_ONCE      a second live instance in the process is refused
 *   MISBEHAVE_CONSTANT  steps that differ from the first are an error */
#define _GNU_SOURCE /* feenableexcept */
#define FMU_FRONT
#include "kill.h"
#include "lti.h"
#include "thread.h"
#include "wrap.h"

#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <direct.h>
#define chdir _chdir
#else
#include <unistd.h>
#endif

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { X0, D, AT, AT2, AT3, ABOVE, FRACTION };

enum { FAULT, DURING, ENDING, TIMES, POLLS, MESSAGES, VARIABLE, MEGABYTES, BALLAST };

enum { MARKER, VICTIM, TRAIL };

/* Faults is Instance.data. What is behind lti is no part of the saved state: a
 * fault that has happened has happened. */
typedef struct {
	Lti lti;
	int happened;                /* how often */
	int warned;                  /* the call under way is to return Warning */
	int leave;                   /* it is to leave with these modes; its own work is not to suffer */
	int mute;                    /* the last step says nothing of its end */
	int pending, polls;
	double t, h;                 /* the pending step */
	double first;                /* MISBEHAVE_CONSTANT: size of the first step */
	double committed[2];         /* Uncommitted: states before the last step that could not be undone */
	int commits;
} Faults;

static Faults *faults(Instance *m) { return m->data; }

static const char *const fault_names[] = {NAMES_Fault};

static const char *prepare(Instance *m, double x[]) {
	x[0] = m->s.p[X0];
	Linear *l = lti_begin(m);
	l->A[0][0] = -1;
	l->B[0][0] = 1;
	l->A[1][0] = 1;
	l->C[0][0] = 1;
	l->D[0][0] = m->s.p[D];
	lti_end(m);
	return 0;
}

static const char *extent(const Instance *m, size_t *kept, size_t *scratch) {
	*kept = (size_t)m->s.n[BALLAST] << 17;
	*scratch = 0;
	return 0;
}

static void begin(Instance *m) {
	for (size_t i = 0; i < m->n_kept; i++) m->kept[i] = (double)i;
}

const Model model = {
	.data_size = sizeof(Faults), .prepare = prepare, .evaluate = lti_evaluate, .jacobian = lti_jacobian, .step = lti_step,
	.extent = extent, .begin = begin,
};

/* What changes the process. */

static void handler(int signal) { (void)signal; }

static void take_signals(void) {
	signal(SIGSEGV, handler);
	signal(SIGFPE, handler);
	signal(SIGINT, handler);
}

static void change_locale(void) {
	/* What there is on the machine; C.UTF-8 comes with every recent C library. */
	static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "C.UTF-8", "C.utf8", "en_US.UTF-8", ".UTF8"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (setlocale(LC_ALL, names[i])) return;
}

static void change_directory(void) {
	if (chdir("/") != 0) return; /* then there is nothing to be seen */
}

static void flush_to_zero(void) {
#if defined(__SSE2__)
	_mm_setcsr(_mm_getcsr() | 0x8040);
#elif defined(__aarch64__)
	unsigned long long v;
	__asm__ volatile("mrs %0, fpcr" : "=r"(v));
	__asm__ volatile("msr fpcr, %0" : : "r"(v | 1ull << 24));
#endif
}

static void unmask_exceptions(void) {
#if defined(__SSE2__)
	_mm_setcsr(_mm_getcsr() & ~_MM_MASK_DIV_ZERO);
#elif defined(__GLIBC__)
	feenableexcept(FE_DIVBYZERO);
#endif
}

/* What disturbs the logger. */

static void storm(Instance *m) {
	for (int i = 0; i < m->s.n[MESSAGES]; i++) SAY(m, StatusWarning, "logEvents", "message %d of %d", i + 1, m->s.n[MESSAGES]);
}

static void formats(Instance *m) {
	SAY(m, StatusWarning, "logEvents", "reference " REF("r") " and " REF("i") ", ## and " REF("r"), 1, FIRST_INTEGER, 999);
#if FMU_FMI == 3 /* nothing is a format */
	LOGGER(&m->callbacks, m->callbacks.componentEnvironment, m->name, StatusWarning, "logEvents", "%s and %n, incomplete %");
#else
	int untouched = 7;
	const char *none = NULL;
	SAY(m, StatusWarning, "logEvents", "%s has %d %% and %5.2f|%-4d|%lld|%zu|%c", "format", 12, 3.14159, 5,
	    1234567890123LL, (size_t)42, 'c');
	SAY(m, StatusWarning, "logEvents", "null %s", none);
	SAY(m, StatusWarning, "logEvents", "count%n stays", &untouched);
	SAY(m, StatusWarning, "logEvents", "%f %f %f %f %f %f %f %f %f %f", 1., 2., 3., 4., 5., 6., 7., 8., 9., 10.);
	SAY(m, StatusWarning, "logEvents", "incomplete %");
	if (untouched != 7) SAY(m, StatusError, "logStatusError", "%%n was carried out: %d", untouched);
#endif
	SAY(m, StatusWarning, "logEvents", "bytes \xff\xfe");
	SAY(m, StatusWarning, "logEvents", NULL);
	SAY(m, StatusWarning, NULL, "no category");
	SAY(m, StatusWarning, "undeclared", "undeclared category");
	SAY(m, (Status)17, "logEvents", "undefined status");
	SAY(m, StatusOK, "logEvents", "not important");
}

/* Voice is what a thread of the FMU's own keeps of its instance, for ever. */
typedef struct {
	Callbacks callbacks;
	char name[64];
	int messages;
	volatile int spoken;
} Voice;

/* speak logs from the FMU's thread, also after its instance was freed. */
static void speak(void *p) {
	Voice *v = p;
	for (int i = 0;; i++) {
		char text[64];
		snprintf(text, sizeof text, "from a thread of its own, %d", i);
		LOGGER(&v->callbacks, v->callbacks.componentEnvironment, v->name, StatusWarning, "logEvents", text);
		if (i + 1 < v->messages) continue;
		v->spoken = 1;
		thread_sleep(1);
	}
}

static void start_thread(Instance *m) {
	Voice *v = calloc(1, sizeof *v);
	if (!v) return;
	v->callbacks = m->callbacks;
	v->messages = m->s.n[MESSAGES];
	strncpy(v->name, m->name, sizeof v->name - 1);
	if (!thread_start(speak, v)) return;
	while (!v->spoken) thread_sleep(1);
}

/* count gives how often the fault has happened: to this instance, or, if there is
 * a marker, as long as it exists, to all of all processes. The marker is a file of
 * one byte for each time. */
static long count(const Instance *m) {
	if (!m->s.text[MARKER][0]) return ((const Faults *)m->data)->happened;
	FILE *f = fopen(m->s.text[MARKER], "rb");
	long n = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;
	if (f) fclose(f);
	return n;
}

/* happen counts. It gives 0 if the marker cannot be written. */
static int happen(Instance *m) {
	const char *marker = m->s.text[MARKER];
	faults(m)->happened++;
	if (!marker[0]) return 1;
	FILE *f = fopen(marker, "ab");
	int written = f && fputc('x', f) != EOF;
	if (f && fclose(f) != 0) written = 0;
	if (!written) SAY(m, StatusError, "logStatusError", "the marker %s cannot be written: %s", marker, strerror(errno));
	return written;
}

/* due tells whether the fault is to happen in a function at a time. */
static int due(const Instance *m, int during, double t) {
	double slack = 1e-9 * fmax(1, fabs(t));
	if (m->s.n[FAULT] == Fault_None || m->s.n[DURING] != during || t < m->s.p[AT] - slack) return 0;
	long n = count(m);
	double from = n < 1 ? 0 : m->s.p[n < 2 ? AT2 : AT3];
	return (m->s.n[TIMES] == 0 || n < m->s.n[TIMES]) && (from == 0 || t >= from - slack);
}

/* strike lets the fault happen, if it is due. It gives what the function has to
 * return at once, or a status up to Warning to go on. */
static Status strike(Instance *m, int during, double t) {
	Faults *f = faults(m);
	f->warned = 0;
	if (!due(m, during, t)) return StatusOK;
	switch (m->s.n[FAULT]) {
	case Fault_DiscardMute: case Fault_DiscardAndEnd: case Fault_TooLong: case Fault_Pending: case Fault_NaN:
	case Fault_Infinity: case Fault_StopShort: case Fault_ForgetState: case Fault_WrongDerivatives:
	case Fault_RefuseOrders: case Fault_IgnoreOrders: case Fault_Uncommitted:
		return StatusOK; /* happens elsewhere */
	}
	if (!happen(m)) return StatusError;
	switch (m->s.n[FAULT]) {
	case Fault_Warning:
		SAY(m, StatusWarning, "logEvents", "%s: warned on purpose at t = %g", m->function, t);
		f->warned = 1;
		return StatusWarning;
	case Fault_Discard:
		SAY(m, StatusDiscard, "logStatusDiscard", "%s: discarded on purpose at t = %g", m->function, t);
		return StatusDiscard;
	case Fault_Error:
		SAY(m, StatusError, "logStatusError", "%s: failed on purpose at t = %g", m->function, t);
		return StatusError;
	case Fault_Fatal:
		SAY(m, StatusFatal, "logStatusError", "%s: beyond repair on purpose at t = %g", m->function, t);
		return StatusFatal;
	case Fault_Undefined: return (Status)17;
	case Fault_LogStorm: storm(m); break;
	case Fault_LogFormats: formats(m); break;
	case Fault_LogThread: start_thread(m); break;
	case Fault_LogEnvironment:
		LOGGER(&m->callbacks, (void *)m, m->name, StatusWarning, "logEvents", "with a wrong environment");
		break;
	case Fault_LogName:
		LOGGER(&m->callbacks, m->callbacks.componentEnvironment, "nobody", StatusWarning, "logEvents", "with a wrong name");
		break;
	case Fault_Rounding: case Fault_FlushToZero: case Fault_Exceptions: f->leave = m->s.n[FAULT]; break;
	case Fault_Locale: change_locale(); break;
	case Fault_Directory: change_directory(); break;
	case Fault_Signals: take_signals(); break;
	default: /* those of kill.c */
		if (m->s.n[FAULT] >= (int)(sizeof fault_names / sizeof fault_names[0])) break; /* no item */
		SAY(m, StatusWarning, "logEvents", "%s: %s on purpose at t = %g", m->function, fault_names[m->s.n[FAULT]], t);
		if (during == During_LogCallback) return kill_in_logger(m, m->s.n[FAULT], m->s.n[MEGABYTES]);
		return kill_process(m, m->s.n[FAULT], m->s.n[MEGABYTES]);
	}
	return StatusOK;
}

#define STRIKE(m, during, t)                                                                      \
	do {                                                                                          \
		Status strike_ = strike(m, during, t);                                                    \
		if (strike_ > StatusWarning) return strike_;                                              \
	} while (0)

/* done gives the status of a function that has done its work. */
static Status done(Instance *m, Status s) {
	Faults *f = faults(m);
	switch (f->leave) {
	case Fault_Rounding: fesetround(FE_UPWARD); break;
	case Fault_FlushToZero: flush_to_zero(); break;
	case Fault_Exceptions: unmask_exceptions(); break;
	}
	f->leave = 0;
	return s == StatusOK && f->warned ? StatusWarning : s;
}

#define IDLE(m)                                                                                   \
	do {                                                                                          \
		if (faults(m)->pending) {                                                                 \
			SAY(m, StatusError, "logStatusError", "%s: not allowed while a step is pending", m->function); \
			return StatusError;                                                                   \
		}                                                                                         \
	} while (0)

#ifdef MISBEHAVE_LOAD
static void change_process(void) {
	change_locale();
	change_directory();
	take_signals();
	flush_to_zero();
}

__attribute__((constructor)) static void loaded(void) { change_process(); }
#endif

/* trail is what a step writes for the end of the process to keep, in files whose names begin
 * with path: lines of standard output, of a file that stays open and of one with a large
 * buffer, and what an exit handler and a destructor do. */
static struct {
	char path[900];
	FILE *log, *buffered;
} trail;

static FILE *trail_open(const char *suffix) {
	char path[1000];
	snprintf(path, sizeof path, "%s.%s", trail.path, suffix);
	return fopen(path, "a");
}

static void trail_end(const char *by) {
	FILE *f = trail.path[0] ? trail_open(by) : NULL;
	if (!f) return;
	printf("trail: %s\n", by);
	fputs("run\n", f);
	fclose(f);
}

static void trail_exit(void) { trail_end("handler"); }

static void trail_step(const Instance *m, double t) {
	const char *path = m->s.text[TRAIL];
	if (!path[0]) return;
	if (!trail.path[0]) {
		strncpy(trail.path, path, sizeof trail.path - 1);
		trail.log = trail_open("log");
		trail.buffered = trail_open("buffered");
		if (trail.buffered) setvbuf(trail.buffered, NULL, _IOFBF, 1 << 16);
		atexit(trail_exit);
	}
	printf("trail: step %g\n", t);
	if (trail.log) fprintf(trail.log, "step %g\n", t);
	if (trail.buffered) fprintf(trail.buffered, "step %g\n", t);
}

/* While the library is loaded and unloaded there is no instance: start values say what
 * happens. */
static void at_exit(void) { kill_process(NULL, START_fault, START_megabytes); }

__attribute__((constructor)) static void at_load(void) {
	if (START_during == During_Load) kill_process(NULL, START_fault, START_megabytes);
	if (START_during == During_Exit) atexit(at_exit);
}

__attribute__((destructor)) static void at_unload(void) {
	trail_end("destructor");
	if (START_during == During_Unload) kill_process(NULL, START_fault, START_megabytes);
}

#ifdef MISBEHAVE_ONCE
static int alive;
#endif

Instance *fmu_new(const Callbacks *f, const char *function, const char *name, const char *guid, const char *wrong, int logging) {
#ifdef MISBEHAVE_REFUSE
	deliver(f, name, StatusError, "logStatusError", "there is no licence for this FMU");
	return NULL;
#endif
#ifdef MISBEHAVE_LOAD
	change_process();
#endif
#ifdef MISBEHAVE_ONCE
	if (alive) {
		deliver(f, name, StatusError, "logStatusError", "an instance is alive already");
		return NULL;
	}
#endif
	Instance *m = base_new(f, function, name, guid, wrong, logging);
	if (m && strike(m, During_Instantiate, 0) > StatusWarning) {
		base_free(m);
		m = NULL;
	}
#ifdef MISBEHAVE_ONCE
	alive = m != NULL;
#endif
	return m;
}

void fmu_free(Instance *m) {
	strike(m, During_FreeInstance, m->s.time);
#ifdef MISBEHAVE_ONCE
	alive = 0;
#endif
	base_free(m);
}

Status fmu_experiment(Instance *m, int has_tolerance, double tolerance, double start, int has_stop, double stop) {
	STRIKE(m, During_SetupExperiment, start);
	return done(m, base_experiment(m, has_tolerance, tolerance, start, has_stop, stop));
}

Status fmu_initialize(Instance *m) {
	STRIKE(m, During_EnterInitializationMode, m->s.time);
	return done(m, base_initialize(m));
}

Status fmu_start(Instance *m) {
	STRIKE(m, During_ExitInitializationMode, m->s.time);
	return done(m, base_start(m));
}

Status fmu_terminate(Instance *m) {
	IDLE(m);
	STRIKE(m, During_Terminate, m->s.time);
	return done(m, base_terminate(m));
}

Status fmu_get_reals(Instance *m, const unsigned vr[], size_t n, double value[]) {
	IDLE(m);
	STRIKE(m, During_GetReal, m->s.time);
	Status s = base_get_reals(m, vr, n, value);
	if (due(m, During_GetReal, m->s.time))
		for (size_t i = 0; i < n; i++)
			if ((int)vr[i] == m->s.n[VARIABLE]) {
				if (m->s.n[FAULT] == Fault_NaN) value[i] = NAN;
				if (m->s.n[FAULT] == Fault_Infinity) value[i] = -INFINITY;
			}
	return done(m, s);
}

Status fmu_set_reals(Instance *m, const unsigned vr[], size_t n, const double value[]) {
	IDLE(m);
	STRIKE(m, During_SetReal, m->s.time);
	return done(m, base_set_reals(m, vr, n, value));
}

Status fmu_set_input_derivatives(Instance *m, const unsigned vr[], size_t n, const int order[], const double value[]) {
	IDLE(m);
	STRIKE(m, During_SetRealInputDerivatives, m->s.time);
	for (size_t i = 0; i < n; i++)
		if (order[i] > 1) {
			if (m->s.n[FAULT] == Fault_RefuseOrders) {
				SAY(m, StatusError, "logStatusError", "%s: order %d is not taken", m->function, order[i]);
				return StatusError;
			}
			if (m->s.n[FAULT] == Fault_IgnoreOrders) {
				SAY(m, StatusWarning, "logEvents", "%s: order %d is ignored", m->function, order[i]);
				return StatusOK;
			}
		}
	return done(m, base_set_input_derivatives(m, vr, n, order, value));
}

Status fmu_directional(Instance *m, const unsigned unknown[], size_t n, const unsigned known[], size_t k, const double seed[],
                       double d[]) {
	STRIKE(m, During_GetDirectionalDerivative, m->s.time);
	Status s = base_directional(m, unknown, n, known, k, seed, d);
	if (m->s.n[FAULT] == Fault_WrongDerivatives)
		for (size_t i = 0; i < n; i++) d[i] *= 2;
	if (m->s.n[FAULT] == Fault_NaN && due(m, During_GetDirectionalDerivative, m->s.time))
		for (size_t i = 0; i < n; i++) d[i] = NAN;
	return done(m, s);
}

Status fmu_get_state(Instance *m, void **state) {
	IDLE(m);
	STRIKE(m, During_GetFMUstate, m->s.time);
	return done(m, base_get_state(m, state));
}

Status fmu_set_state(Instance *m, void *state) {
	IDLE(m);
	STRIKE(m, During_SetFMUstate, m->s.time);
	double z = m->s.x[1];
	Status s = base_set_state(m, state);
	if (m->s.n[FAULT] == Fault_ForgetState) m->s.x[1] = z;
	return done(m, s);
}

Status fmu_serialize(Instance *m, void *state, char bytes[], size_t size) {
	STRIKE(m, During_SerializeFMUstate, m->s.time);
	return done(m, base_serialize(m, state, bytes, size));
}

Status fmu_deserialize(Instance *m, const char bytes[], size_t size, void **state) {
	STRIKE(m, During_DeSerializeFMUstate, m->s.time);
	return done(m, base_deserialize(m, bytes, size, state));
}

/* Steps. */

/* stop_at makes the part of a step up to a time and discards the rest. */
static Status stop_at(Instance *m, double t, double h, double reached, int ended) {
	happen(m);
	m->ended = ended;
	faults(m)->mute = m->s.n[FAULT] == Fault_DiscardMute;
	if (FMU_FMI == 3 && !ended) reached = t; /* Discard leaves all as it was (FMI 3.0 4.2.1.1) */
	if (reached > t) base_step(m, t, reached - t, 0);
	if (FMU_FMI == 3 && ended) return StatusOK;
	SAY(m, StatusDiscard, "logStatusDiscard", "the step from t = %g by %g is discarded at t = %g on purpose", t, h, m->s.time);
	return StatusDiscard;
}

Status fmu_step(Instance *m, double t, double h, int no_restore) {
	Faults *f = faults(m);
	double at = m->s.p[AT], slack = 1e-9 * h;
	IDLE(m);
	trail_step(m, t);
	m->ended = f->mute = 0;
#ifdef MISBEHAVE_CONSTANT
	if (f->first == 0) f->first = h;
	if (h != f->first) {
		SAY(m, StatusError, "logStatusError", "the step is %.17g and not %.17g as before", h, f->first);
		return StatusError;
	}
#endif
	int crosses = t < at - slack && t + h > at + slack;
	switch (m->s.n[FAULT]) {
	case Fault_Discard: case Fault_DiscardMute:
		if (FMU_FMI == 2 && m->s.n[DURING] == During_DoStep) {
			if (crosses) return stop_at(m, t, h, at, 0);
			return base_step(m, t, h, no_restore);
		}
		break;
	case Fault_DiscardAndEnd:
		if (crosses) return stop_at(m, t, h, at, 1);
		break;
	case Fault_TooLong:
		if (h > m->s.p[ABOVE] + slack && due(m, During_DoStep, t)) return stop_at(m, t, h, t + m->s.p[FRACTION] * h, 0);
		break;
	case Fault_Pending:
		if (FMU_FMI == 2 && due(m, During_DoStep, t)) {
			happen(m);
			f->pending = 1;
			f->polls = m->s.n[POLLS];
			f->t = t;
			f->h = h;
			return StatusPending;
		}
		break;
	case Fault_StopShort:
		if (due(m, During_DoStep, t)) {
			happen(m);
			return base_step(m, m->s.time, m->s.p[FRACTION] * h, no_restore);
		}
		return base_step(m, m->s.time, t + h - m->s.time, no_restore); /* catches up */
	}
	if (m->s.n[FAULT] == Fault_Uncommitted) {
		if (no_restore || !f->commits) memcpy(f->committed, m->s.x, sizeof f->committed);
		else memcpy(m->s.x, f->committed, sizeof f->committed);
		f->commits = 1;
	}
	STRIKE(m, During_DoStep, t);
	if (m->s.n[FAULT] >= Fault_Segfault) STRIKE(m, During_LogCallback, t);
	Status s = base_step(m, t, h, no_restore);
	if (s == StatusOK && due(m, During_DoStep, t)) {
		if (m->s.n[FAULT] == Fault_NaN) m->s.x[0] = m->s.y[0] = NAN;
		if (m->s.n[FAULT] == Fault_Infinity) m->s.x[0] = m->s.y[0] = INFINITY;
	}
	return done(m, s);
}

/* Questions about a step, which FMI 3.0 does not have. */
#if FMU_FMI == 2

fmi2Status fmi2CancelStep(fmi2Component c) {
	Instance *m = c;
	if (!faults(m)->pending) return fmi2Error;
	faults(m)->pending = 0;
	return m->s.n[ENDING] == Ending_Uncancellable ? fmi2Error : fmi2OK;
}

fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Status *value) {
	Instance *m = c;
	Faults *f = faults(m);
	if (!f->pending || kind != fmi2DoStepStatus) return base_GetStatus(c, kind, value);
	*value = fmi2Pending;
	if (f->polls < 0 || f->polls-- > 0) return fmi2OK;
	f->pending = 0;
	switch (m->s.n[ENDING]) {
	case Ending_Discard: *value = (fmi2Status)stop_at(m, f->t, f->h, f->t + m->s.p[FRACTION] * f->h, 0); break;
	case Ending_Error:
		SAY(m, StatusError, "logStatusError", "the pending step failed on purpose");
		*value = fmi2Error;
		break;
	case Ending_Fatal:
		SAY(m, StatusFatal, "logStatusError", "the pending step is beyond repair on purpose");
		*value = fmi2Fatal;
		break;
	default: *value = (fmi2Status)base_step(m, f->t, f->h, 0);
	}
	return fmi2OK;
}

fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value) {
	return faults(c)->mute ? fmi2Error : base_GetRealStatus(c, kind, value);
}

fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value) {
	return faults(c)->mute ? fmi2Error : base_GetBooleanStatus(c, kind, value);
}

fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind kind, fmi2String *value) {
	if (!faults(c)->pending || kind != fmi2PendingStatus) return base_GetStringStatus(c, kind, value);
	*value = "waiting on purpose";
	return fmi2OK;
}

#endif
