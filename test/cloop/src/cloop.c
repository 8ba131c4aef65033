/* A co-simulation by the letter of FMI 2.0, for tests to compare with: it includes
 * nothing of the program under test, and no header of it either. It reads from
 * standard input, a line each:
 *
 *	steps N H                              (H: the communication step, as %a)
 *	instances K, and for each
 *	library / guid / resources / name      (four lines)
 *	before M, after M                      (lists: values set before the initialisation
 *	                                        mode, and inside it)
 *	  real|integer|boolean VR VALUE, or string VR TEXT
 *	outputs M
 *	  real|integer|boolean VR
 *	wires M
 *	  TO VR FROM OUTPUT                    (Reals; instances and outputs by number from 0)
 *
 * Each step sets the inputs that wires lead to, as the outputs were at its start, and
 * calls fmi2DoStep with noSetFMUStatePriorToCurrentPoint = true. A line "point …" of
 * output has all outputs after the initialisation, and one after each step, Reals as %a;
 * other lines are of the FMUs. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *component;
typedef void logger(void *environment, const char *instance, int status, const char *category, const char *message, ...);
struct callbacks {
	logger *log;
	void *(*allocate)(size_t, size_t);
	void (*release)(void *);
	void (*finished)(void *, int);
	void *environment;
};

static void quiet(void *environment, const char *instance, int status, const char *category, const char *message, ...) {
	(void)environment, (void)instance, (void)status, (void)category, (void)message;
}

static struct callbacks callbacks = {quiet, calloc, free, NULL, NULL};

enum { REAL, INTEGER, BOOLEAN, STRING };
static const char *const kinds[] = {"real", "integer", "boolean", "string"};
static const char *const getters[] = {"fmi2GetReal", "fmi2GetInteger", "fmi2GetBoolean"};

struct value {
	int kind;
	unsigned vr;
	double real;
	int whole;
	char *text;
};

struct instance {
	void *library;
	component c;
	int outputs;
	struct value *out;
	int wires;
	unsigned *wire;       /* value references of inputs */
	double **source, *in; /* what leads to them; what is set */
};

static char line[1 << 16];

static void fail(const char *what) {
	fprintf(stderr, "cloop: %s: %s\n", what, line);
	exit(1);
}

static char *next(void) {
	if (!fgets(line, sizeof line, stdin)) fail("the input ends");
	line[strcspn(line, "\n")] = 0;
	return line;
}

static long count(const char *what) {
	next();
	size_t n = strlen(what);
	if (strncmp(line, what, n) || line[n] != ' ') fail(what);
	return strtol(line + n, NULL, 10);
}

static char *copy(const char *s) {
	char *c = malloc(strlen(s) + 1);
	return strcpy(c, s);
}

static void *function(struct instance *m, const char *name) {
	void *f = dlsym(m->library, name);
	if (!f) {
		fprintf(stderr, "cloop: no %s\n", name);
		exit(1);
	}
	return f;
}

static void must(int status, const char *what) {
	if (status > 1) {
		fprintf(stderr, "cloop: %s returned %d\n", what, status);
		exit(1);
	}
}

static struct value read_value(int with_value) {
	char kind[16];
	struct value v = {0};
	int at = 0;
	next();
	if (sscanf(line, "%15s %u%n", kind, &v.vr, &at) != 2) fail("a variable");
	while (v.kind < 4 && strcmp(kind, kinds[v.kind])) v.kind++;
	if (v.kind > STRING) fail("a kind");
	if (!with_value) return v;
	if (v.kind == STRING) v.text = copy(line[at] ? line + at + 1 : "");
	else if (v.kind == REAL) v.real = strtod(line + at, NULL);
	else v.whole = (int)strtol(line + at, NULL, 10);
	return v;
}

/* read_list reads as many values as its head says. */
static struct value *read_list(const char *head, long *n) {
	*n = count(head);
	struct value *list = calloc((size_t)*n + 1, sizeof *list);
	for (long k = 0; k < *n; k++) list[k] = read_value(1);
	return list;
}

static void set(struct instance *m, const struct value *v) {
	switch (v->kind) {
	case REAL: must(((int (*)(component, const unsigned *, size_t, const double *))function(m, "fmi2SetReal"))(m->c, &v->vr, 1, &v->real), "fmi2SetReal"); break;
	case INTEGER: must(((int (*)(component, const unsigned *, size_t, const int *))function(m, "fmi2SetInteger"))(m->c, &v->vr, 1, &v->whole), "fmi2SetInteger"); break;
	case BOOLEAN: must(((int (*)(component, const unsigned *, size_t, const int *))function(m, "fmi2SetBoolean"))(m->c, &v->vr, 1, &v->whole), "fmi2SetBoolean"); break;
	case STRING: must(((int (*)(component, const unsigned *, size_t, const char *const *))function(m, "fmi2SetString"))(m->c, &v->vr, 1, (const char *const *)&v->text), "fmi2SetString"); break;
	}
}

/* get reads the outputs of all kinds, each kind in one call. */
static void get(struct instance *m) {
	for (int kind = REAL; kind < STRING; kind++) {
		unsigned *vr = calloc((size_t)m->outputs + 1, sizeof *vr);
		size_t n = 0;
		for (int k = 0; k < m->outputs; k++)
			if (m->out[k].kind == kind) vr[n++] = m->out[k].vr;
		double *real = calloc(n + 1, sizeof *real);
		int *whole = calloc(n + 1, sizeof *whole);
		if (n && kind == REAL) must(((int (*)(component, const unsigned *, size_t, double *))function(m, getters[kind]))(m->c, vr, n, real), getters[kind]);
		else if (n) must(((int (*)(component, const unsigned *, size_t, int *))function(m, getters[kind]))(m->c, vr, n, whole), getters[kind]);
		n = 0;
		for (int k = 0; k < m->outputs; k++)
			if (m->out[k].kind == kind) m->out[k].real = real[n], m->out[k].whole = whole[n], n++;
		free(vr), free(real), free(whole);
	}
}

/* wire sets the inputs to the outputs that lead to them, as they were got last. */
static void wire(struct instance *m) {
	for (int w = 0; w < m->wires; w++) m->in[w] = *m->source[w];
	if (m->wires)
		must(((int (*)(component, const unsigned *, size_t, const double *))function(m, "fmi2SetReal"))(m->c, m->wire, (size_t)m->wires, m->in), "fmi2SetReal");
}

static void print(const struct instance *all, long n) {
	printf("\npoint ");
	for (long i = 0; i < n; i++)
		for (int k = 0; k < all[i].outputs; k++)
			if (all[i].out[k].kind == REAL) printf("%a ", all[i].out[k].real);
			else printf("%d ", all[i].out[k].whole);
	printf("\n");
}

int main(void) {
	/* FMUs may take it for granted that their process has a mathematical library. */
	dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
	double H = 0;
	long steps = 0;
	next();
	if (sscanf(line, "steps %ld %lf", &steps, &H) != 2) fail("steps");
	long n = count("instances");
	struct instance *all = calloc((size_t)n + 1, sizeof *all);
	for (long i = 0; i < n; i++) {
		struct instance *m = &all[i];
		if (!(m->library = dlopen(next(), RTLD_NOW | RTLD_LOCAL))) fail(dlerror());
		char *guid = copy(next()), *resources = copy(next()), *name = copy(next());
		m->c = ((component(*)(const char *, int, const char *, const char *, const struct callbacks *, int, int))function(m, "fmi2Instantiate"))(
			name, 1, guid, resources, &callbacks, 0, 0);
		if (!m->c) fail("fmi2Instantiate");
		must(((int (*)(component, int, double, double, int, double))function(m, "fmi2SetupExperiment"))(m->c, 0, 0, 0, 0, 0), "fmi2SetupExperiment");
		long k, values;
		struct value *list = read_list("before", &values);
		for (k = 0; k < values; k++) set(m, &list[k]);
		must(((int (*)(component))function(m, "fmi2EnterInitializationMode"))(m->c), "fmi2EnterInitializationMode");
		list = read_list("after", &values);
		for (k = 0; k < values; k++) set(m, &list[k]);
		m->outputs = (int)count("outputs");
		m->out = calloc((size_t)m->outputs + 1, sizeof *m->out);
		for (k = 0; k < m->outputs; k++) m->out[k] = read_value(0);
	}
	long wires = count("wires");
	for (long w = 0; w < wires; w++) {
		long to, from, output;
		unsigned vr;
		next();
		if (sscanf(line, "%ld %u %ld %ld", &to, &vr, &from, &output) != 4) fail("a wire");
		struct instance *m = &all[to];
		m->wire = realloc(m->wire, (size_t)(m->wires + 1) * sizeof *m->wire);
		m->source = realloc(m->source, (size_t)(m->wires + 1) * sizeof *m->source);
		m->in = realloc(m->in, (size_t)(m->wires + 1) * sizeof *m->in);
		m->wire[m->wires] = vr;
		m->source[m->wires++] = &all[from].out[output].real;
	}
	/* In the initialisation mode values pass on until none can be under way any more. */
	for (long sweep = 0; wires && sweep < 2 * n; sweep++)
		for (long i = 0; i < n; i++) {
			if (sweep) wire(&all[i]);
			get(&all[i]);
		}
	for (long i = 0; i < n; i++) must(((int (*)(component))function(&all[i], "fmi2ExitInitializationMode"))(all[i].c), "fmi2ExitInitializationMode");
	for (long i = 0; i < n; i++) get(&all[i]);
	print(all, n);
	for (long s = 0; s < steps; s++) {
		for (long i = 0; i < n; i++) wire(&all[i]);
		for (long i = 0; i < n; i++) {
			int status = ((int (*)(component, double, double, int))function(&all[i], "fmi2DoStep"))(all[i].c, (double)s * H, H, 1);
			must(status, "fmi2DoStep");
		}
		for (long i = 0; i < n; i++) get(&all[i]);
		print(all, n);
	}
	for (long i = 0; i < n; i++) {
		((int (*)(component))function(&all[i], "fmi2Terminate"))(all[i].c);
		((void (*)(component))function(&all[i], "fmi2FreeInstance"))(all[i].c);
	}
	return 0;
}
