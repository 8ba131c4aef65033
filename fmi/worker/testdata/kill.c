/* An FMU that ends its process, or does not return, as the environment variable
   KILL says: FAULT@FUNCTION@TIME, for example "segv@fmi2DoStep@0.3". */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fmi2Functions.h"

typedef struct {
	const fmi2CallbackFunctions *callbacks;
	char name[100];
	double t, u, x;
} model;

static double now;
static volatile int sink;

static int overflow(int n)
{
	volatile char block[4096];
	block[0] = (char)n;
	sink += block[0];
	return overflow(n + 1) + block[0];
}

static const fmi2CallbackFunctions *shown;

static void segv(void) { *(volatile int *)sink = 1; }

/* Writes over the memory that it shares with the other process. */
static void scribble(int byte)
{
	char line[600];
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof line, maps)) {
		unsigned long from, to;
		if (strstr(line, "macrostep-worker") && sscanf(line, "%lx-%lx", &from, &to) == 2) memset((void *)from, byte, to - from);
	}
	if (maps) fclose(maps);
}

static void *in_thread(void *arg)
{
	segv();
	return arg;
}

/* Forks once. The child, whose numbers are wrong, returns from the call, after a message if
   it logs. The parent waits for the end of the child and tells how it ended. */
static double spoilt;
static void returns_twice(int logs)
{
	static int done;
	int status = 0;
	pid_t child;
	if (done++) return;
	if ((child = fork()) == 0) {
		spoilt = 1e9;
		if (logs) shown->logger(shown->componentEnvironment, "victim", fmi2OK, "fork", "from the child");
		return;
	}
	waitpid(child, &status, 0);
	shown->logger(shown->componentEnvironment, "victim", fmi2OK, "fork", "the child ended by %d with %d", WTERMSIG(status), WEXITSTATUS(status));
}

/* Starts a program that is not there, and forgets to end the child then. */
static void starts_nothing(void)
{
	static int done;
	if (done++) return;
	if (fork() == 0) {
		spoilt = 1e9;
		execl("/there/is/no/such/program", "program", (char *)0);
	}
}

static void may_kill(const char *function)
{
	const char *kill_text = getenv("KILL");
	char fault[20], where[60];
	double at;
	pthread_t thread;
	if (!kill_text || sscanf(kill_text, "%19[^@]@%59[^@]@%lf", fault, where, &at) != 3)
		return;
	if (strcmp(where, function) != 0 || now < at - 1e-9)
		return;
	if (!strcmp(fault, "forkreturn")) { returns_twice(0); return; }
	if (!strcmp(fault, "forklog")) { returns_twice(1); return; }
	if (!strcmp(fault, "forkexec")) { starts_nothing(); return; }
	printf("about to %s\n", fault);
	if (!strcmp(fault, "segv")) segv();
	else if (!strcmp(fault, "abort")) abort();
	else if (!strcmp(fault, "ill")) __builtin_trap();
	else if (!strcmp(fault, "exit0")) exit(0);
	else if (!strcmp(fault, "exit7")) exit(7);
	else if (!strcmp(fault, "overflow")) overflow(0);
	else if (!strcmp(fault, "loop")) while (1) sink++;
	else if (!strcmp(fault, "sleep")) while (1) sleep(1000);
	else if (!strcmp(fault, "kill9")) kill(getpid(), SIGKILL);
	else if (!strcmp(fault, "raise")) raise(SIGSEGV);
	else if (!strcmp(fault, "flood")) { /* more than is logged, then the end */
		for (int k = 1; k <= 5000; k++) shown->logger(shown->componentEnvironment, "victim", fmi2OK, "flood", "message %d", k);
		abort();
	}
	else if (!strncmp(fault, "scribble", 8)) scribble(atoi(fault + 8));
	else if (!strcmp(fault, "thread")) {
		pthread_create(&thread, 0, in_thread, 0);
		pthread_join(thread, 0);
	} else if (!strcmp(fault, "hog")) {
		for (;;) {
			char *p = malloc(1 << 20);
			if (!p) abort();
			memset(p, 1, 1 << 20);
		}
	} else if (!strcmp(fault, "fork")) {
		if (fork() == 0) {
			for (;;) sleep(1000);
		}
		abort();
	}
}

#define ENTER may_kill(__func__)

const char *fmi2GetTypesPlatform(void) { return "default"; }
const char *fmi2GetVersion(void) { return "2.0"; }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String uri,
	const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean logging)
{
	model *m = calloc(1, sizeof *m);
	(void)type, (void)guid, (void)uri, (void)visible, (void)logging;
	strncpy(m->name, name, sizeof m->name - 1);
	m->callbacks = shown = callbacks;
	ENTER;
	return m;
}
void fmi2FreeInstance(fmi2Component c) { ENTER; free(c); }
fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String k[]) { (void)c, (void)on, (void)n, (void)k; return fmi2OK; }
fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean td, fmi2Real tol, fmi2Real start, fmi2Boolean sd, fmi2Real stop)
{
	(void)td, (void)tol, (void)sd, (void)stop;
	((model *)c)->t = now = start;
	ENTER;
	return fmi2OK;
}
fmi2Status fmi2EnterInitializationMode(fmi2Component c) { (void)c; ENTER; return fmi2OK; }
fmi2Status fmi2ExitInitializationMode(fmi2Component c) { (void)c; ENTER; return fmi2OK; }
fmi2Status fmi2Terminate(fmi2Component c) { (void)c; ENTER; return fmi2OK; }
fmi2Status fmi2Reset(fmi2Component c) { (void)c; return fmi2OK; }
fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real v[])
{
	ENTER;
	for (size_t k = 0; k < n; k++)
		if (vr[k] == 0) ((model *)c)->u = v[k];
	return fmi2OK;
}
fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real v[])
{
	ENTER;
	for (size_t k = 0; k < n; k++)
		v[k] = (vr[k] == 0 ? ((model *)c)->u : ((model *)c)->x) + spoilt;
	return fmi2OK;
}
fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean f)
{
	model *m = c;
	(void)f;
	now = t;
	m->callbacks->logger(m->callbacks->componentEnvironment, m->name, fmi2OK, "info", "step at %g", t);
	ENTER;
	m->x += h * m->u;
	m->t = now = t + h;
	return fmi2OK;
}
fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *s)
{
	ENTER;
	if (!*s) *s = malloc(sizeof(model));
	memcpy(*s, c, sizeof(model));
	return fmi2OK;
}
fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate s) { ENTER; memcpy(c, s, sizeof(model)); return fmi2OK; }
fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *s) { (void)c; ENTER; free(*s); *s = 0; return fmi2OK; }
