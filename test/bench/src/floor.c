/* The floor: a co-simulation by hand, with nothing around it that the steps do not
 * need. It reads the system from standard input:
 *
 *	steps N size H order jacobi|sequence|threads
 *	instances N
 *	library guid resources nset vr value … nin vr … nout vr …       (N times)
 *	connections N
 *	to-instance to-input from-instance from-output                (N times)
 *
 * and prints the values of the outputs at the end. With a file name as its argument
 * it appends the outputs of every step to that file, as doubles. The order threads is
 * that of jacobi, the first half of the instances in one thread and the rest in another,
 * which wait for each other by looking all the time. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi2.h"

typedef struct {
	fmi2SetRealTYPE *set;
	fmi2DoStepTYPE *step;
	fmi2GetRealTYPE *get;
	fmi2Component c;
	size_t nin, nout;
	fmi2ValueReference *in, *out;
	double *u, *y;
	size_t wired; /* connections to its inputs, which stand together */
	struct wire {
		double *to, *from;
	} *wires;
} Instance;

static void quiet(fmi2ComponentEnvironment e, fmi2String n, fmi2Status s, fmi2String c, fmi2String m, ...)
{
	(void)e, (void)n, (void)s, (void)c, (void)m;
}

static const fmi2CallbackFunctions callbacks = {quiet, calloc, free, NULL, NULL};

static void must(int good, const char *what)
{
	if (!good) {
		fprintf(stderr, "floor: %s\n", what);
		exit(1);
	}
}

static void *symbol(void *lib, const char *name)
{
	void *f = dlsym(lib, name);
	must(f != NULL, name);
	return f;
}

static fmi2ValueReference *references(size_t *n)
{
	must(scanf("%zu", n) == 1, "count of variables");
	fmi2ValueReference *vr = calloc(*n + 1, sizeof *vr);
	for (size_t k = 0; k < *n; k++)
		must(scanf("%u", &vr[k]) == 1, "value reference");
	return vr;
}

static Instance *all;
static long n, steps;
static double h;

static void copy(Instance *m)
{
	for (size_t w = 0; w < m->wired; w++)
		*m->wires[w].to = *m->wires[w].from;
}

static void advance(Instance *m, double t)
{
	if ((m->nin && m->set(m->c, m->in, m->nin, m->u) > fmi2Warning) ||
		m->step(m->c, t, h, 1) > fmi2Warning ||
		(m->nout && m->get(m->c, m->out, m->nout, m->y) > fmi2Warning))
		must(0, "step");
}

static atomic_long arrived;

/* meet waits until both threads have met so many times. */
static void meet(long times)
{
	atomic_fetch_add(&arrived, 1);
	while (atomic_load_explicit(&arrived, memory_order_acquire) < 2 * times)
		;
}

static void *half(void *second)
{
	long from = second ? n / 2 : 0, to = second ? n : n / 2;
	for (long s = 0; s < steps; s++) {
		for (long k = from; k < to; k++)
			copy(&all[k]);
		meet(2 * s + 1);
		for (long k = from; k < to; k++)
			advance(&all[k], (double)s * h);
		meet(2 * s + 2);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long wires;
	char order[16];
	must(scanf("steps %ld size %lf order %15s instances %ld", &steps, &h, order, &n) == 4, "head");
	all = calloc((size_t)n, sizeof *all);
	for (long k = 0; k < n; k++) {
		Instance *m = &all[k];
		static char library[4096], guid[256], resources[4096], name[32];
		must(scanf("%4095s %255s %4095s", library, guid, resources) == 3, "instance");
		void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
		must(lib != NULL, dlerror());
		m->set = (fmi2SetRealTYPE *)symbol(lib, "fmi2SetReal");
		m->step = (fmi2DoStepTYPE *)symbol(lib, "fmi2DoStep");
		m->get = (fmi2GetRealTYPE *)symbol(lib, "fmi2GetReal");
		snprintf(name, sizeof name, "m%ld", k);
		m->c = ((fmi2InstantiateTYPE *)symbol(lib, "fmi2Instantiate"))(name, fmi2CoSimulation, guid, resources, &callbacks, 0, 0);
		must(m->c != NULL, "instantiate");
		size_t nset;
		must(scanf("%zu", &nset) == 1, "count of values");
		for (size_t s = 0; s < nset; s++) {
			fmi2ValueReference vr;
			double v;
			must(scanf("%u %lf", &vr, &v) == 2, "value");
			must(m->set(m->c, &vr, 1, &v) <= fmi2Warning, "set");
		}
		must(((fmi2SetupExperimentTYPE *)symbol(lib, "fmi2SetupExperiment"))(m->c, 0, 0, 0, 0, 0) <= fmi2Warning, "experiment");
		must(((fmi2EnterInitializationModeTYPE *)symbol(lib, "fmi2EnterInitializationMode"))(m->c) <= fmi2Warning, "enter");
		must(((fmi2ExitInitializationModeTYPE *)symbol(lib, "fmi2ExitInitializationMode"))(m->c) <= fmi2Warning, "exit");
		m->in = references(&m->nin);
		m->out = references(&m->nout);
		m->u = calloc(m->nin + 1, sizeof(double));
		m->y = calloc(m->nout + 1, sizeof(double));
		m->wires = calloc(m->nin + 1, sizeof *m->wires);
		must(m->nin == 0 || m->get(m->c, m->in, m->nin, m->u) <= fmi2Warning, "get");
		must(m->nout == 0 || m->get(m->c, m->out, m->nout, m->y) <= fmi2Warning, "get");
	}
	must(scanf(" connections %ld", &wires) == 1, "connections");
	for (long w = 0; w < wires; w++) {
		size_t a, i, b, o;
		must(scanf("%zu %zu %zu %zu", &a, &i, &b, &o) == 4, "connection");
		all[a].wires[all[a].wired++] = (struct wire){&all[a].u[i], &all[b].y[o]};
	}
	FILE *out = argc > 1 ? fopen(argv[1], "wb") : NULL;
	int sequence = strcmp(order, "sequence") == 0;

	if (strcmp(order, "threads") == 0) {
		pthread_t other;
		must(out == NULL, "threads write no file");
		must(pthread_create(&other, NULL, half, &all) == 0, "thread");
		half(NULL);
		must(pthread_join(other, NULL) == 0, "thread");
		steps = 0;
	}
	for (long s = 0; s < steps; s++) {
		if (!sequence)
			for (long k = 0; k < n; k++)
				copy(&all[k]);
		for (long k = 0; k < n; k++) {
			if (sequence)
				copy(&all[k]);
			advance(&all[k], (double)s * h);
		}
		if (out)
			for (long k = 0; k < n; k++)
				must(fwrite(all[k].y, sizeof(double), all[k].nout, out) == all[k].nout, "write");
	}
	if (out)
		must(fclose(out) == 0, "close");
	for (long k = 0; k < n; k++)
		for (size_t o = 0; o < all[k].nout; o++)
			printf("%.17g\n", all[k].y[o]);
	return 0;
}
