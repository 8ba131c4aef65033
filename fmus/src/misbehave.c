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
 *   MISBEHAVE_REFUSE    fmi2Instantiate gives null
 *   MISBEHAVE_LOAD      loading and fmi2Instantiate change the process
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
	int discarded, ended, mute;  /* what is true of the last step */
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
	for (int i = 0; i < m->s.n[MESSAGES]; i++) SAY(m, fmi2Warning, "logEvents", "message %d of %d", i + 1, m->s.n[MESSAGES]);
}

static void formats(Instance *m) {
	int untouched = 7;
	const char *none = NULL;
	SAY(m, fmi2Warning, "logEvents", "%s has %d %% and %5.2f|%-4d|%lld|%zu|%c", "format", 12, 3.14159, 5,
	    1234567890123LL, (size_t)42, 'c');
	SAY(m, fmi2Warning, "logEvents", "reference #r1# and #i0#, ## and #r999#");
	SAY(m, fmi2Warning, "logEvents", "null %s", none);
	SAY(m, fmi2Warning, "logEvents", "count%n stays", &untouched);
	SAY(m, fmi2Warning, "logEvents", "%f %f %f %f %f %f %f %f %f %f", 1., 2., 3., 4., 5., 6., 7., 8., 9., 10.);
	SAY(m, fmi2Warning, "logEvents", "incomplete %");
	SAY(m, fmi2Warning, "logEvents", "bytes \xff\xfe");
	SAY(m, fmi2Warning, "logEvents", NULL);
	SAY(m, fmi2Warning, NULL, "no category");
	SAY(m, fmi2Warning, "undeclared", "undeclared category");
	SAY(m, (fmi2Status)17, "logEvents", "undefined status");
	SAY(m, fmi2OK, "logEvents", "not important");
	if (untouched != 7) SAY(m, fmi2Error, "logStatusError", "%%n was carried out: %d", untouched);
}

/* Voice is what a thread of the FMU's own keeps of its instance, for ever. */
typedef struct {
	fmi2CallbackFunctions callbacks;
	char name[64];
	int messages;
	volatile int spoken;
} Voice;

/* speak logs from the FMU's thread, also after fmi2FreeInstance. */
static void speak(void *p) {
	Voice *v = p;
	for (int i = 0;; i++) {
		v->callbacks.logger(v->callbacks.componentEnvironment, v->name, fmi2Warning, "logEvents",
		                    "from a thread of its own, %d", i);
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
	if (!written) SAY(m, fmi2Error, "logStatusError", "the marker %s cannot be written: %s", marker, strerror(errno));
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
static fmi2Status strike(Instance *m, int during, double t, const char *function) {
	Faults *f = faults(m);
	f->warned = 0;
	if (!due(m, during, t)) return fmi2OK;
	switch (m->s.n[FAULT]) {
	case Fault_DiscardMute: case Fault_DiscardAndEnd: case Fault_TooLong: case Fault_Pending: case Fault_NaN:
	case Fault_Infinity: case Fault_StopShort: case Fault_ForgetState: case Fault_WrongDerivatives:
	case Fault_RefuseOrders: case Fault_IgnoreOrders: case Fault_Uncommitted:
		return fmi2OK; /* happens elsewhere */
	}
	if (!happen(m)) return fmi2Error;
	switch (m->s.n[FAULT]) {
	case Fault_Warning:
		SAY(m, fmi2Warning, "logEvents", "%s: warned on purpose at t = %g", function, t);
		f->warned = 1;
		return fmi2Warning;
	case Fault_Discard:
		SAY(m, fmi2Discard, "logStatusDiscard", "%s: discarded on purpose at t = %g", function, t);
		return fmi2Discard;
	case Fault_Error:
		SAY(m, fmi2Error, "logStatusError", "%s: failed on purpose at t = %g", function, t);
		return fmi2Error;
	case Fault_Fatal:
		SAY(m, fmi2Fatal, "logStatusError", "%s: beyond repair on purpose at t = %g", function, t);
		return fmi2Fatal;
	case Fault_Undefined: return (fmi2Status)17;
	case Fault_LogStorm: storm(m); break;
	case Fault_LogFormats: formats(m); break;
	case Fault_LogThread: start_thread(m); break;
	case Fault_LogEnvironment:
		m->callbacks.logger((fmi2ComponentEnvironment)m, m->name, fmi2Warning, "logEvents", "with a wrong environment");
		break;
	case Fault_LogName:
		m->callbacks.logger(m->callbacks.componentEnvironment, "nobody", fmi2Warning, "logEvents", "with a wrong name");
		break;
	case Fault_Rounding: case Fault_FlushToZero: case Fault_Exceptions: f->leave = m->s.n[FAULT]; break;
	case Fault_Locale: change_locale(); break;
	case Fault_Directory: change_directory(); break;
	case Fault_Signals: take_signals(); break;
	default: /* those of kill.c */
		if (m->s.n[FAULT] >= (int)(sizeof fault_names / sizeof fault_names[0])) break; /* no item */
		SAY(m, fmi2Warning, "logEvents", "%s: %s on purpose at t = %g", function, fault_names[m->s.n[FAULT]], t);
		if (during == During_LogCallback) return kill_in_logger(m, m->s.n[FAULT], m->s.n[MEGABYTES]);
		return kill_process(m, m->s.n[FAULT], m->s.n[MEGABYTES]);
	}
	return fmi2OK;
}

#define STRIKE(m, during, t)                                                                      \
	do {                                                                                          \
		fmi2Status strike_ = strike(m, during, t, __func__);                                      \
		if (strike_ > fmi2Warning) return strike_;                                                \
	} while (0)

/* done gives the status of a function that has done its work. */
static fmi2Status done(Instance *m, fmi2Status s) {
	Faults *f = faults(m);
	switch (f->leave) {
	case Fault_Rounding: fesetround(FE_UPWARD); break;
	case Fault_FlushToZero: flush_to_zero(); break;
	case Fault_Exceptions: unmask_exceptions(); break;
	}
	f->leave = 0;
	return s == fmi2OK && f->warned ? fmi2Warning : s;
}

#define IDLE(m)                                                                                   \
	do {                                                                                          \
		if (faults(m)->pending) {                                                                 \
			SAY(m, fmi2Error, "logStatusError", "%s: not allowed while a step is pending", __func__); \
			return fmi2Error;                                                                     \
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

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean logging) {
#ifdef MISBEHAVE_REFUSE
	functions->logger(functions->componentEnvironment, name, fmi2Error, "logStatusError", "there is no licence for this FMU");
	return NULL;
#endif
#ifdef MISBEHAVE_LOAD
	change_process();
#endif
#ifdef MISBEHAVE_ONCE
	if (alive) {
		functions->logger(functions->componentEnvironment, name, fmi2Error, "logStatusError", "an instance is alive already");
		return NULL;
	}
#endif
	fmi2Component c = base_Instantiate(name, type, guid, resources, functions, visible, logging);
	if (c && strike(c, During_Instantiate, 0, __func__) > fmi2Warning) {
		base_FreeInstance(c);
		c = NULL;
	}
#ifdef MISBEHAVE_ONCE
	alive = c != NULL;
#endif
	return c;
}

void fmi2FreeInstance(fmi2Component c) {
	if (!c) return;
	strike(c, During_FreeInstance, ((Instance *)c)->s.time, __func__);
#ifdef MISBEHAVE_ONCE
	alive = 0;
#endif
	base_FreeInstance(c);
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean tolerance_defined, fmi2Real tolerance, fmi2Real start,
                               fmi2Boolean stop_defined, fmi2Real stop) {
	Instance *m = c;
	STRIKE(m, During_SetupExperiment, start);
	return done(m, base_SetupExperiment(c, tolerance_defined, tolerance, start, stop_defined, stop));
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c) {
	Instance *m = c;
	STRIKE(m, During_EnterInitializationMode, m->s.time);
	return done(m, base_EnterInitializationMode(c));
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c) {
	Instance *m = c;
	STRIKE(m, During_ExitInitializationMode, m->s.time);
	return done(m, base_ExitInitializationMode(c));
}

fmi2Status fmi2Terminate(fmi2Component c) {
	Instance *m = c;
	IDLE(m);
	STRIKE(m, During_Terminate, m->s.time);
	return done(m, base_Terminate(c));
}

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real value[]) {
	Instance *m = c;
	IDLE(m);
	STRIKE(m, During_GetReal, m->s.time);
	fmi2Status s = base_GetReal(c, vr, n, value);
	if (due(m, During_GetReal, m->s.time))
		for (size_t i = 0; i < n; i++)
			if ((int)vr[i] == m->s.n[VARIABLE]) {
				if (m->s.n[FAULT] == Fault_NaN) value[i] = NAN;
				if (m->s.n[FAULT] == Fault_Infinity) value[i] = -INFINITY;
			}
	return done(m, s);
}

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real value[]) {
	Instance *m = c;
	IDLE(m);
	STRIKE(m, During_SetReal, m->s.time);
	return done(m, base_SetReal(c, vr, n, value));
}

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                       const fmi2Integer order[], const fmi2Real value[]) {
	Instance *m = c;
	IDLE(m);
	STRIKE(m, During_SetRealInputDerivatives, m->s.time);
	for (size_t i = 0; i < n; i++)
		if (order[i] > 1) {
			if (m->s.n[FAULT] == Fault_RefuseOrders) {
				SAY(m, fmi2Error, "logStatusError", "%s: order %d is not taken", __func__, order[i]);
				return fmi2Error;
			}
			if (m->s.n[FAULT] == Fault_IgnoreOrders) {
				SAY(m, fmi2Warning, "logEvents", "%s: order %d is ignored", __func__, order[i]);
				return fmi2OK;
			}
		}
	return done(m, base_SetRealInputDerivatives(c, vr, n, order, value));
}

fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknown[], size_t n,
                                        const fmi2ValueReference known[], size_t k, const fmi2Real dv_known[],
                                        fmi2Real dv_unknown[]) {
	Instance *m = c;
	STRIKE(m, During_GetDirectionalDerivative, m->s.time);
	fmi2Status s = base_GetDirectionalDerivative(c, unknown, n, known, k, dv_known, dv_unknown);
	if (m->s.n[FAULT] == Fault_WrongDerivatives)
		for (size_t i = 0; i < n; i++) dv_unknown[i] *= 2;
	if (m->s.n[FAULT] == Fault_NaN && due(m, During_GetDirectionalDerivative, m->s.time))
		for (size_t i = 0; i < n; i++) dv_unknown[i] = NAN;
	return done(m, s);
}

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state) {
	Instance *m = c;
	IDLE(m);
	STRIKE(m, During_GetFMUstate, m->s.time);
	return done(m, base_GetFMUstate(c, state));
}

fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state) {
	Instance *m = c;
	IDLE(m);
	STRIKE(m, During_SetFMUstate, m->s.time);
	double z = m->s.x[1];
	fmi2Status s = base_SetFMUstate(c, state);
	if (m->s.n[FAULT] == Fault_ForgetState) m->s.x[1] = z;
	return done(m, s);
}

fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
	Instance *m = c;
	STRIKE(m, During_SerializeFMUstate, m->s.time);
	return done(m, base_SerializeFMUstate(c, state, bytes, size));
}

fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state) {
	Instance *m = c;
	STRIKE(m, During_DeSerializeFMUstate, m->s.time);
	return done(m, base_DeSerializeFMUstate(c, bytes, size, state));
}

/* Steps. */

/* stop_at makes the part of a step up to a time and discards the rest. */
static fmi2Status stop_at(Instance *m, double t, double h, double reached, int ended) {
	Faults *f = faults(m);
	happen(m);
	f->discarded = 1;
	f->ended = ended;
	f->mute = m->s.n[FAULT] == Fault_DiscardMute;
	if (reached > t) base_DoStep(m, t, reached - t, fmi2False);
	SAY(m, fmi2Discard, "logStatusDiscard", "the step from t = %g by %g is discarded at t = %g on purpose", t, h, m->s.time);
	return fmi2Discard;
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean no_restore) {
	Instance *m = c;
	Faults *f = faults(m);
	double at = m->s.p[AT], slack = 1e-9 * h;
	IDLE(m);
	trail_step(m, t);
	f->discarded = f->ended = f->mute = 0;
#ifdef MISBEHAVE_CONSTANT
	if (f->first == 0) f->first = h;
	if (h != f->first) {
		SAY(m, fmi2Error, "logStatusError", "the step is %.17g and not %.17g as before", h, f->first);
		return fmi2Error;
	}
#endif
	int crosses = t < at - slack && t + h > at + slack;
	switch (m->s.n[FAULT]) {
	case Fault_Discard: case Fault_DiscardMute:
		if (m->s.n[DURING] == During_DoStep) {
			if (crosses) return stop_at(m, t, h, at, 0);
			return base_DoStep(c, t, h, no_restore);
		}
		break;
	case Fault_DiscardAndEnd:
		if (crosses) return stop_at(m, t, h, at, 1);
		break;
	case Fault_TooLong:
		if (h > m->s.p[ABOVE] + slack && due(m, During_DoStep, t)) return stop_at(m, t, h, t + m->s.p[FRACTION] * h, 0);
		break;
	case Fault_Pending:
		if (due(m, During_DoStep, t)) {
			happen(m);
			f->pending = 1;
			f->polls = m->s.n[POLLS];
			f->t = t;
			f->h = h;
			return fmi2Pending;
		}
		break;
	case Fault_StopShort:
		if (due(m, During_DoStep, t)) {
			happen(m);
			return base_DoStep(c, m->s.time, m->s.p[FRACTION] * h, no_restore);
		}
		return base_DoStep(c, m->s.time, t + h - m->s.time, no_restore); /* catches up */
	}
	if (m->s.n[FAULT] == Fault_Uncommitted) {
		if (no_restore || !f->commits) memcpy(f->committed, m->s.x, sizeof f->committed);
		else memcpy(m->s.x, f->committed, sizeof f->committed);
		f->commits = 1;
	}
	STRIKE(m, During_DoStep, t);
	if (m->s.n[FAULT] >= Fault_Segfault) STRIKE(m, During_LogCallback, t);
	fmi2Status s = base_DoStep(c, t, h, no_restore);
	if (s == fmi2OK && due(m, During_DoStep, t)) {
		if (m->s.n[FAULT] == Fault_NaN) m->s.x[0] = m->s.y[0] = NAN;
		if (m->s.n[FAULT] == Fault_Infinity) m->s.x[0] = m->s.y[0] = INFINITY;
	}
	return done(m, s);
}

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
	case Ending_Discard: *value = stop_at(m, f->t, f->h, f->t + m->s.p[FRACTION] * f->h, 0); break;
	case Ending_Error:
		SAY(m, fmi2Error, "logStatusError", "the pending step failed on purpose");
		*value = fmi2Error;
		break;
	case Ending_Fatal:
		SAY(m, fmi2Fatal, "logStatusError", "the pending step is beyond repair on purpose");
		*value = fmi2Fatal;
		break;
	default: *value = base_DoStep(c, f->t, f->h, fmi2False);
	}
	return fmi2OK;
}

fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value) {
	return faults(c)->mute ? fmi2Error : base_GetRealStatus(c, kind, value);
}

fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value) {
	Faults *f = faults(c);
	if (f->mute) return fmi2Error;
	fmi2Status s = base_GetBooleanStatus(c, kind, value);
	if (s == fmi2OK && kind == fmi2Terminated) *value = f->ended;
	return s;
}

fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind kind, fmi2String *value) {
	if (!faults(c)->pending || kind != fmi2PendingStatus) return base_GetStringStatus(c, kind, value);
	*value = "waiting on purpose";
	return fmi2OK;
}
