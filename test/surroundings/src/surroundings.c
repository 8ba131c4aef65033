/* An FMU that reports what surrounds it, and may write files.
 *
 *     x' = g (u - x) by one Euler step,  y = x,  g from table.txt in the working folder (1 without it)
 *
 * files says what it does at each communication point, and to files of the working folder:
 *
 *   0  reports
 *   1  begins written.txt anew and writes a line for each step
 *   2  appends a line to appended.txt at the start and for each step
 *   3  makes a file with a name of its own
 *   4  reads and removes removed.txt
 *   5  writes as 1 into the subfolder made
 *   6  nothing
 *   7  nothing, but needs table.txt
 *
 * It ends its process in the first step from the time crash on, unless the file marker exists, which it then makes.
 */
#define _GNU_SOURCE
#include "fmi2.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <direct.h>
#include <io.h>
#include <process.h>
#include <sys/stat.h>
#define mkdir(name, mode) _mkdir(name)
#define environ _environ
#define getpid _getpid
#define umask _umask
#else
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
extern char **environ;
#endif

enum { U, X, DX, Y, CRASH, REALS };
enum { FILES, FOUND, INTEGERS };
enum { MARKER, TABLE, ENVIRONMENT, UMASK, LOCALE, INPUT, STREAMS, SIGNALS, CRASHES, MASK, LIMITS, STACK, GROUP, NICE, TEXTS };

typedef struct {
	double r[REALS], g, t;
	int n[INTEGERS], begun;
	char marker[512];
} State;

typedef struct {
	State s;
	FILE *out;
	fmi2CallbackFunctions log;
	char text[TEXTS][1024];
} Life;

static int made; /* files of their own */

static void add(char *to, const char *format, long long a, long long b) {
	size_t n = strlen(to);
	snprintf(to + n, 1024 - n, format, a, b);
}

/* environment gives the number of variables, a hash of all, and the names of those that only macrostep could have set. */
static void environment(char *to) {
	unsigned long long sum = 0;
	int n = 0;
	for (char **e = environ; e && *e; e++) {
		if (!strncmp(*e, "PWD=", 4) || !strncmp(*e, "OLDPWD=", 7) || **e == '=') continue;
		unsigned long long h = 1469598103934665603ull;
		for (char *c = *e; *c; c++) h = (h ^ (unsigned char)*c) * 1099511628211ull;
		sum += h;
		n++;
	}
	add(to, "%lld variables %llx", n, sum);
	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, "MACROSTEP_", 10) || !strncmp(*e, "GOTRACEBACK", 11) || !strncmp(*e, "LC_", 3)) {
			strncat(to, " ", 1023 - strlen(to));
			strncat(to, *e, 1023 - strlen(to));
		}
}

static void language(char *to) {
	char before[256], number[32];
	snprintf(before, sizeof before, "%s", setlocale(LC_ALL, NULL));
	const char *own = setlocale(LC_ALL, "");
	snprintf(number, sizeof number, "%.1f", 1.5);
	snprintf(to, 1024, "%s then %s %s", before, own ? own : "none", number);
	setlocale(LC_ALL, before);
}

static void report(Life *m) {
	for (int k = TABLE; k < TEXTS; k++) m->text[k][0] = 0;
	FILE *f = fopen("table.txt", "r");
	if (!f || fscanf(f, "%1000s", m->text[TABLE]) != 1) strcpy(m->text[TABLE], "missing");
	if (f) fclose(f);
	if (m->s.n[FILES]) return;
	environment(m->text[ENVIRONMENT]);
	int mask = umask(0);
	umask(mask);
	add(m->text[UMASK], "%llo%.0lld", mask, 0);
	language(m->text[LOCALE]);
	char c;
	add(m->text[INPUT], "reads %lld%.0lld", read(0, &c, 1), 0);
	printf("to stdout\n");
	fflush(stdout);
	fprintf(stderr, "to stderr\n");
#ifndef _WIN32
	add(m->text[STREAMS], "%lld %lld", (fcntl(1, F_GETFL) & O_ACCMODE) != O_RDONLY, (fcntl(2, F_GETFL) & O_ACCMODE) != O_RDONLY);
	static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGQUIT,
#ifdef SIGSTKFLT
		SIGSTKFLT,
#endif
	};
	for (int s = 1; s < 32; s++) {
		struct sigaction a;
		if (sigaction(s, NULL, &a) != 0) continue;
		int k = s == SIGTTIN || s == SIGTTOU ? GROUP : SIGNALS;
		for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
			if (s == crashes[i]) k = CRASHES;
		add(m->text[k], a.sa_handler == SIG_DFL ? "d%.0lld%.0lld" : a.sa_handler == SIG_IGN ? "i%.0lld%.0lld" : "h%.0lld%.0lld", 0, 0);
	}
	sigset_t blocked;
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	for (int s = 1; s < 32; s++)
		if (sigismember(&blocked, s)) add(m->text[MASK], " %lld%.0lld", s, 0);
	for (int k = 0; k < 16; k++) {
		struct rlimit l;
		if (getrlimit(k, &l) != 0) continue;
		add(m->text[k == RLIMIT_STACK ? STACK : LIMITS], " %lld/%lld", l.rlim_cur, l.rlim_max);
	}
	int terminal = open("/dev/tty", O_RDWR);
	add(m->text[GROUP], " leads %lld terminal %lld", getpgrp() == getpid(), terminal >= 0);
	if (terminal >= 0) close(terminal);
	add(m->text[NICE], "%lld%.0lld", getpriority(PRIO_PROCESS, 0), 0);
#endif
}

static void step_file(Life *m, const char *line) {
	if (m->s.n[FILES] == 2) {
		FILE *f = fopen("appended.txt", "a");
		if (!f) return;
		fprintf(f, "%s\n", line);
		fclose(f);
	}
	if (m->out) {
		fprintf(m->out, "%s\n", line);
		fflush(m->out);
	}
}

static void begin_files(Life *m) {
	char name[64];
	FILE *f = NULL;
	switch (m->s.n[FILES]) {
	case 1:
		m->out = fopen("written.txt", "w");
		break;
	case 3:
		snprintf(name, sizeof name, "own-%d-%d.txt", (int)getpid(), ++made);
		f = fopen(name, "w");
		break;
	case 4:
		f = fopen("removed.txt", "r");
		m->s.n[FOUND] = f != NULL;
		break;
	case 5:
		mkdir("made", 0777);
		m->out = fopen("made/written.txt", "w");
		break;
	}
	if (f) fclose(f);
	if (m->s.n[FILES] == 4) remove("removed.txt");
	step_file(m, "start");
}

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean on) {
	(void)type, (void)guid, (void)resources, (void)visible, (void)on, (void)name;
	Life *m = calloc(1, sizeof *m);
	m->log = *callbacks;
	m->s.r[U] = 1;
	m->s.r[CRASH] = 1e9;
	m->s.n[FILES] = START_FILES;
	m->s.n[FOUND] = -1;
	return m;
}
void fmi2FreeInstance(fmi2Component c) {
	Life *m = c;
	if (!m) return;
	if (m->out) fclose(m->out);
	free(m);
}
fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String names[]) { (void)c, (void)on, (void)n, (void)names; return fmi2OK; }
fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean d, fmi2Real tolerance, fmi2Real t, fmi2Boolean s, fmi2Real stop) {
	(void)d, (void)tolerance, (void)s, (void)stop;
	((Life *)c)->s.t = t;
	return fmi2OK;
}
fmi2Status fmi2EnterInitializationMode(fmi2Component c) {
	Life *m = c;
	report(m);
	m->s.g = 1;
	if (m->s.n[FILES] == 7 && !strcmp(m->text[TABLE], "missing")) {
		m->log.logger(m->log.componentEnvironment, "", fmi2Error, "error", "table.txt is missing");
		return fmi2Error;
	}
	if (strcmp(m->text[TABLE], "missing")) m->s.g = atof(m->text[TABLE]);
	begin_files(m);
	return fmi2OK;
}
fmi2Status fmi2ExitInitializationMode(fmi2Component c) { (void)c; return fmi2OK; }
fmi2Status fmi2Terminate(fmi2Component c) { (void)c; return fmi2OK; }
fmi2Status fmi2Reset(fmi2Component c) { (void)c; return fmi2Error; }

#define GET(type, name, of, most) \
	fmi2Status name(fmi2Component c, const fmi2ValueReference vr[], size_t n, type v[]) { \
		for (size_t k = 0; k < n; k++) { if (vr[k] >= most) return fmi2Error; v[k] = ((Life *)c)->of[vr[k]]; } \
		return fmi2OK; \
	}
#define SET(type, name, of, most) \
	fmi2Status name(fmi2Component c, const fmi2ValueReference vr[], size_t n, const type v[]) { \
		for (size_t k = 0; k < n; k++) { if (vr[k] >= most) return fmi2Error; ((Life *)c)->of[vr[k]] = v[k]; } \
		return fmi2OK; \
	}
GET(fmi2Real, fmi2GetReal, s.r, REALS)
SET(fmi2Real, fmi2SetReal, s.r, REALS)
GET(fmi2Integer, fmi2GetInteger, s.n, INTEGERS)
SET(fmi2Integer, fmi2SetInteger, s.n, INTEGERS)
fmi2Status fmi2GetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Boolean v[]) { (void)c, (void)vr, (void)v; return n ? fmi2Error : fmi2OK; }
fmi2Status fmi2SetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Boolean v[]) { (void)c, (void)vr, (void)v; return n ? fmi2Error : fmi2OK; }
fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2String v[]) {
	Life *m = c;
	for (size_t k = 0; k < n; k++) {
		if (vr[k] >= TEXTS) return fmi2Error;
		v[k] = vr[k] == MARKER ? m->s.marker : m->text[vr[k]];
	}
	return fmi2OK;
}
fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2String v[]) {
	for (size_t k = 0; k < n; k++) {
		if (vr[k] != MARKER) return fmi2Error;
		snprintf(((Life *)c)->s.marker, sizeof ((Life *)c)->s.marker, "%s", v[k]);
	}
	return fmi2OK;
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean n) {
	(void)n;
	Life *m = c;
	char line[64];
	if (t + h / 2 >= m->s.r[CRASH]) {
		FILE *f = fopen(m->s.marker, "r");
		if (f) {
			fclose(f);
		} else {
			f = fopen(m->s.marker, "w");
			if (f) fclose(f);
			abort();
		}
	}
	m->s.r[X] += h * m->s.g * (m->s.r[U] - m->s.r[X]);
	m->s.r[Y] = m->s.r[X];
	m->s.r[DX] = m->s.g * (m->s.r[U] - m->s.r[X]);
	m->s.t = t + h;
	snprintf(line, sizeof line, "%.6g", m->s.t);
	step_file(m, line);
	if (!m->s.n[FILES]) report(m);
	return fmi2OK;
}
fmi2Status fmi2CancelStep(fmi2Component c) { (void)c; return fmi2Error; }
fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer order[], const fmi2Real v[]) {
	(void)c, (void)vr, (void)n, (void)order, (void)v;
	return fmi2OK;
}
fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer order[], fmi2Real v[]) {
	(void)c, (void)vr, (void)n, (void)order, (void)v;
	return fmi2Error;
}
fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind k, fmi2Status *v) { (void)c, (void)k, (void)v; return fmi2Discard; }
fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind k, fmi2Real *v) { (void)c, (void)k, (void)v; return fmi2Discard; }
fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind k, fmi2Integer *v) { (void)c, (void)k, (void)v; return fmi2Discard; }
fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind k, fmi2Boolean *v) { (void)c, (void)k, (void)v; return fmi2Discard; }
fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind k, fmi2String *v) { (void)c, (void)k, (void)v; return fmi2Discard; }
fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknown[], size_t nu, const fmi2ValueReference known[], size_t nk,
                                        const fmi2Real seed[], fmi2Real slope[]) {
	double x = 0, u = 0;
	for (size_t k = 0; k < nk; k++) *(known[k] == X ? &x : &u) += seed[k];
	for (size_t k = 0; k < nu; k++) slope[k] = unknown[k] == DX ? ((Life *)c)->s.g * (u - x) : x;
	return fmi2OK;
}
fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *s) {
	if (!*s) *s = malloc(sizeof(State));
	if (!*s) return fmi2Error;
	memcpy(*s, &((Life *)c)->s, sizeof(State));
	return fmi2OK;
}
fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate s) { memcpy(&((Life *)c)->s, s, sizeof(State)); return fmi2OK; }
fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *s) { (void)c; free(*s); *s = NULL; return fmi2OK; }
fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate s, size_t *n) { (void)c, (void)s; *n = sizeof(State); return fmi2OK; }
fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate s, fmi2Byte b[], size_t n) { (void)c; memcpy(b, s, n); return fmi2OK; }
fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte b[], size_t n, fmi2FMUstate *s) {
	(void)c;
	if (n != sizeof(State)) return fmi2Error;
	if (!*s) *s = malloc(n);
	if (!*s) return fmi2Error;
	memcpy(*s, b, n);
	return fmi2OK;
}
