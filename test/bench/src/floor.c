/* The floor: a co-simulation by hand, with nothing around it that the steps do not
 * need. It reads the system from standard input:
 *
 *	steps N size H scheme jacobi|sequence|fixed-point|threads|processes order K substeps S
 *	instances N
 *	library guid resources nset vr value … nin vr … through … start … nout vr … nread vr …    (N times)
 *	connections N
 *	to-instance to-input from-instance from-output                                 (N times)
 *	bonds N
 *	giver-of-the-effort its-output its-input giver-of-the-flow its-output its-input sign (N times)
 *
 * and prints the values of the outputs at the end, then the residual energy of each
 * bond. through is 1 for an input on which an output depends directly, else 0; nread
 * variables are read after each step and not used. start is the value of an input to
 * which nothing is connected. The schemes:
 *
 *	jacobi       all instances step from the values of the last communication point
 *	sequence     Gauss-Seidel: one after the other, with the new values of those before
 *	fixed-point  implicit: all step with extrapolated inputs, go back to the saved
 *	             state, and step again with inputs that end at the new outputs
 *	threads      jacobi of order 0, the first half of the instances in one thread and the
 *	             rest in another; the two spin until the other arrives
 *	processes    jacobi of order 0, the first S instances in processes of their own, which
 *	             get their inputs and give their outputs in shared memory; who waits looks
 *	             some times, then yields the processor between looks, then sleeps on a futex
 *
 * Inputs of order K > 0 are polynomials through the last K+1 communication points. They
 * reach the instances by input derivatives, or with S > 0 in S substeps. The step size
 * is fixed, and so are the weights of the points. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fmi2.h"

enum { POINTS = 3 }; /* of a polynomial at most */

typedef struct {
	double w[POINTS]; /* values at the last communication points, newest first */
	double next;      /* value at the end of the step */
	int ahead;        /* next is known */
	int through;
	const double *from; /* NULL = not connected */
	long source;
} Input;

typedef struct {
	fmi2SetRealTYPE *set;
	fmi2SetRealInputDerivativesTYPE *derive;
	fmi2DoStepTYPE *step;
	fmi2GetRealTYPE *get;
	fmi2GetFMUstateTYPE *save;
	fmi2SetFMUstateTYPE *restore;
	fmi2ExitInitializationModeTYPE *leave;
	fmi2Component c;
	fmi2FMUstate state;
	size_t nin, nout, nread;
	fmi2ValueReference *in, *out, *read;
	fmi2Integer *orders[POINTS];
	double *u, *du, *y, *scratch;
	Input *inputs;
} Instance;

typedef struct {
	const double *effort, *flow, *effort_in, *flow_in; /* outputs, and inputs as set */
	double sign, power, residual, energy, sum, peak;
} Bond;

/* The weights of the points in the value and the derivatives at the start of the step,
 * in the value at the middle of each substep, and in that at the end. */
typedef struct {
	int n;
	double start[POINTS][POINTS], (*middle)[POINTS], end[POINTS];
} Polynomial;

static Instance *all;
static Bond *bonds;
static long n, steps, nbonds;
static double h;
static int order, substeps;
static Polynomial behind, ahead; /* through points that are known; through next and these */

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

/* weights puts the weight of the value at each node in the derivatives at z into w
 * (B. Fornberg, Math. Comp. 51, 1988). */
static void weights(double w[POINTS][POINTS], const double *node, int count, double z)
{
	double c1 = 1, c4 = node[0] - z;
	memset(w, 0, POINTS * sizeof *w);
	w[0][0] = 1;
	for (int i = 1; i < count; i++) {
		double c2 = 1, c5 = c4;
		c4 = node[i] - z;
		for (int j = 0; j < i; j++) {
			double c3 = node[i] - node[j];
			c2 *= c3;
			if (j == i - 1) {
				for (int m = i; m > 0; m--)
					w[m][i] = c1 * (m * w[m - 1][i - 1] - c5 * w[m][i - 1]) / c2;
				w[0][i] = -c1 * c5 * w[0][i - 1] / c2;
			}
			for (int m = i; m > 0; m--)
				w[m][j] = (c4 * w[m][j] - m * w[m - 1][j]) / c3;
			w[0][j] = c4 * w[0][j] / c3;
		}
		c1 = c2;
	}
}

/* lay computes the weights of a polynomial through count points, the newest at time
 * `newest` after the start of the step. */
static void lay(Polynomial *p, int count, double newest)
{
	double node[POINTS], w[POINTS][POINTS];
	for (int i = 0; i < POINTS; i++)
		node[i] = newest - i * h;
	p->n = count;
	weights(p->start, node, count, 0);
	for (int j = 0; j < substeps; j++) {
		weights(w, node, count, h * (j + 0.5) / substeps);
		memcpy(p->middle[j], w[0], sizeof w[0]);
	}
	weights(w, node, count, h);
	memcpy(p->end, w[0], sizeof w[0]);
}

/* points is called when that many communication points are known. */
static void points(int known)
{
	int most = known <= order ? known : order + 1;
	lay(&behind, most, 0);
	lay(&ahead, known <= order ? known + 1 : order + 1, h);
}

static double behind_at(const Input *x, const double *weight)
{
	double v = 0;
	for (int i = 0; i < behind.n; i++)
		v += weight[i] * x->w[i];
	return v;
}

static double ahead_at(const Input *x, const double *weight)
{
	double v = weight[0] * x->next;
	for (int i = 1; i < ahead.n; i++)
		v += weight[i] * x->w[i - 1];
	return v;
}

/* in_substep is the value of an input over a substep: that at its midpoint. Outputs
 * that depend directly on the input show its value in the last substep, so there it is
 * that at the end; the substep before makes up for the difference. */
static double in_substep(const Input *x, int j)
{
	const Polynomial *p = x->ahead ? &ahead : &behind;
	double (*value)(const Input *, const double *) = x->ahead ? ahead_at : behind_at;
	if (!x->through || substeps == 1 || j < substeps - 2)
		return value(x, p->middle[j]);
	if (j == substeps - 1)
		return value(x, p->end);
	return value(x, p->middle[j]) + (value(x, p->middle[substeps - 1]) - value(x, p->end));
}

static void give(Instance *m)
{
	must(m->nin == 0 || m->set(m->c, m->in, m->nin, m->u) <= fmi2Warning, "set");
}

static void take(Instance *m)
{
	must(m->nout == 0 || m->get(m->c, m->out, m->nout, m->y) <= fmi2Warning, "get");
	must(m->nread == 0 || m->get(m->c, m->read, m->nread, m->scratch) <= fmi2Warning, "get");
}

/* sample takes the step in substeps. */
static void sample(Instance *m, double t)
{
	double piece = h / substeps;
	for (int j = 0; j < substeps; j++) {
		for (size_t k = 0; k < m->nin; k++)
			m->u[k] = in_substep(&m->inputs[k], j);
		give(m);
		must(m->step(m->c, t + h * j / substeps, piece, 1) <= fmi2Warning, "step");
	}
	take(m);
}

/* advance steps an instance from t by h. */
static void advance(Instance *m, double t)
{
	if (order > 0 && substeps > 0) {
		sample(m, t);
		return;
	}
	if (order > 0) /* both polynomials go through the point at t */
		for (size_t k = 0; k < m->nin; k++)
			m->u[k] = m->inputs[k].w[0];
	give(m);
	for (int o = 1; o <= order && m->nin > 0; o++) {
		for (size_t k = 0; k < m->nin; k++) {
			const Input *x = &m->inputs[k];
			m->du[k] = x->ahead ? ahead_at(x, ahead.start[o]) : behind_at(x, behind.start[o]);
		}
		must(m->derive(m->c, m->in, m->nin, m->orders[o], m->du) <= fmi2Warning, "input derivatives");
	}
	must(m->step(m->c, t, h, 1) <= fmi2Warning, "step");
	take(m);
}

/* couple puts the outputs into the inputs of an instance, for order 0. */
static void couple(Instance *m)
{
	for (size_t k = 0; k < m->nin; k++)
		if (m->inputs[k].from)
			m->u[k] = *m->inputs[k].from;
}

/* remember makes the coupled values those of a new communication point. */
static void remember(void)
{
	for (long i = 0; i < n; i++)
		for (size_t k = 0; k < all[i].nin; k++) {
			Input *x = &all[i].inputs[k];
			for (int p = POINTS - 1; p > 0; p--)
				x->w[p] = x->w[p - 1];
			if (x->from)
				x->w[0] = *x->from;
			x->ahead = 0;
		}
}

/* arrive makes the outputs of the instances already stepped the newest points. */
static void arrive(long i)
{
	for (size_t k = 0; k < all[i].nin; k++) {
		Input *x = &all[i].inputs[k];
		if (x->from && x->source < i)
			x->next = *x->from, x->ahead = 1;
	}
}

static void restore(void)
{
	for (long i = 0; i < n; i++)
		must(all[i].restore(all[i].c, all[i].state) <= fmi2Warning, "restore");
}

/* solve takes an implicit step: two sweeps. A set state is where the first one starts,
 * too: some FMUs go another way after it. */
static void solve(double t)
{
	for (long i = 0; i < n; i++)
		must(all[i].save(all[i].c, &all[i].state) <= fmi2Warning, "save");
	restore();
	for (long i = 0; i < n; i++)
		advance(&all[i], t);
	double norm = 0;
	for (long i = 0; i < n; i++)
		for (size_t k = 0; k < all[i].nin; k++) {
			Input *x = &all[i].inputs[k];
			if (!x->from)
				continue;
			double z = behind_at(x, behind.end), r = z - *x->from;
			norm += r * r;
			x->next = z - r, x->ahead = 1;
		}
	must(norm < INFINITY, "the fixed point has no residual");
	restore();
	for (long i = 0; i < n; i++)
		advance(&all[i], t);
	for (long i = 0; i < n; i++) /* is it solved? */
		for (size_t k = 0; k < all[i].nin; k++) {
			const Input *x = &all[i].inputs[k];
			double r = x->from ? x->next - *x->from : 0;
			norm += r * r;
		}
	must(norm < INFINITY, "the fixed point diverges");
}

/* measure takes the residual power of each bond, of inputs held over the step. */
static void measure(void)
{
	for (long i = 0; i < nbonds; i++) {
		Bond *b = &bonds[i];
		double p = b->sign * (*b->effort_in * *b->flow - *b->flow_in * *b->effort);
		b->residual = p;
		b->energy += p * h;
		b->power += *b->effort * *b->flow * h;
		double size = fabs(p);
		b->sum += size * h;
		if (size > b->peak)
			b->peak = size;
	}
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
			couple(&all[k]);
		meet(2 * s + 1);
		for (long k = from; k < to; k++)
			advance(&all[k], (double)s * h);
		meet(2 * s + 2);
	}
	return NULL;
}

/* What a process and the master share. */
typedef struct {
	_Alignas(64) atomic_uint posted, child_sleeps;
	_Alignas(64) atomic_uint answered, master_sleeps;
	_Alignas(64) double t, values[];
} Shared;

static Shared **shared;
static pid_t *child;

static void await(atomic_uint *word, unsigned was, atomic_uint *sleeps, int yields)
{
	for (int looks = 0; atomic_load(word) == was; looks++) {
		if (looks < 50)
			continue;
		if (looks < 50 + yields) {
			sched_yield();
			continue;
		}
		atomic_store(sleeps, 1);
		syscall(SYS_futex, word, FUTEX_WAIT, was, NULL, NULL, 0);
		atomic_store(sleeps, 0);
	}
}

static void post(atomic_uint *word, unsigned v, atomic_uint *sleeps)
{
	atomic_store(word, v);
	if (atomic_load(sleeps))
		syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* part moves instance k into a process of its own; k counts. Only as many as there are
 * processors yield before they sleep. */
static void part(long k, long count)
{
	Instance *m = &all[k];
	int yields = count <= sysconf(_SC_NPROCESSORS_ONLN) ? 100 : 0;
	size_t size = sizeof(Shared) + (m->nin + m->nout) * sizeof(double);
	Shared *s = shared[k] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(s != MAP_FAILED, "shared memory");
	memcpy(s->values, m->u, m->nin * sizeof(double));
	memcpy(s->values + m->nin, m->y, m->nout * sizeof(double));
	m->u = s->values, m->y = s->values + m->nin;
	child[k] = fork();
	must(child[k] >= 0, "fork");
	if (child[k] > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned step = 0;; step++) {
		await(&s->posted, step, &s->child_sleeps, yields);
		advance(m, s->t);
		post(&s->answered, step + 1, &s->master_sleeps);
	}
}

/* apart runs the scheme processes: every process gets its step before the first is
 * waited for. */
static void apart(long count)
{
	for (long s = 0; s < steps; s++) {
		double t = (double)s * h;
		for (long k = 0; k < n; k++)
			couple(&all[k]);
		for (long k = 0; k < count; k++) {
			shared[k]->t = t;
			post(&shared[k]->posted, (unsigned)s + 1, &shared[k]->child_sleeps);
		}
		for (long k = count; k < n; k++)
			advance(&all[k], t);
		for (long k = 0; k < count; k++)
			await(&shared[k]->answered, (unsigned)s, &shared[k]->master_sleeps, 100);
	}
	for (long k = 0; k < count; k++)
		kill(child[k], SIGKILL);
}

static void load(Instance *m, long number, int implicit)
{
	static char library[4096], guid[256], resources[4096], name[32];
	must(scanf("%4095s %255s %4095s", library, guid, resources) == 3, "instance");
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	must(lib != NULL, dlerror());
	m->set = (fmi2SetRealTYPE *)symbol(lib, "fmi2SetReal");
	m->step = (fmi2DoStepTYPE *)symbol(lib, "fmi2DoStep");
	m->get = (fmi2GetRealTYPE *)symbol(lib, "fmi2GetReal");
	if (order > 0 && substeps == 0)
		m->derive = (fmi2SetRealInputDerivativesTYPE *)symbol(lib, "fmi2SetRealInputDerivatives");
	if (implicit) {
		m->save = (fmi2GetFMUstateTYPE *)symbol(lib, "fmi2GetFMUstate");
		m->restore = (fmi2SetFMUstateTYPE *)symbol(lib, "fmi2SetFMUstate");
	}
	snprintf(name, sizeof name, "m%ld", number);
	m->c = ((fmi2InstantiateTYPE *)symbol(lib, "fmi2Instantiate"))(name, fmi2CoSimulation, guid, resources, &callbacks, 0, 0);
	must(m->c != NULL, "instantiate");
	must(((fmi2SetupExperimentTYPE *)symbol(lib, "fmi2SetupExperiment"))(m->c, 0, 0, 0, 0, 0) <= fmi2Warning, "experiment");
	size_t nset;
	must(scanf("%zu", &nset) == 1, "count of values");
	for (size_t s = 0; s < nset; s++) {
		fmi2ValueReference vr;
		double v;
		must(scanf("%u %lf", &vr, &v) == 2, "value");
		must(m->set(m->c, &vr, 1, &v) <= fmi2Warning, "set");
	}
	must(((fmi2EnterInitializationModeTYPE *)symbol(lib, "fmi2EnterInitializationMode"))(m->c) <= fmi2Warning, "enter");
	m->leave = (fmi2ExitInitializationModeTYPE *)symbol(lib, "fmi2ExitInitializationMode");
	m->in = references(&m->nin);
	m->inputs = calloc(m->nin + 1, sizeof *m->inputs);
	for (size_t k = 0; k < m->nin; k++)
		must(scanf("%d", &m->inputs[k].through) == 1, "direct dependency");
	m->u = calloc(m->nin + 1, sizeof(double));
	for (size_t k = 0; k < m->nin; k++) {
		must(scanf("%lf", &m->u[k]) == 1, "start value");
		m->inputs[k].w[0] = m->u[k];
	}
	m->out = references(&m->nout);
	m->read = references(&m->nread);
	m->du = calloc(m->nin + 1, sizeof(double));
	m->y = calloc(m->nout + 1, sizeof(double));
	m->scratch = calloc(m->nread + 1, sizeof(double));
	for (int o = 1; o <= order; o++) {
		m->orders[o] = calloc(m->nin + 1, sizeof(fmi2Integer));
		for (size_t k = 0; k < m->nin; k++)
			m->orders[o][k] = o;
	}
}

/* initialise exchanges values during the initialisation, once more where loops may be,
 * and ends it. */
static void initialise(void)
{
	for (int pass = 0; pass < 2; pass++)
		for (long k = 0; k < n; k++) {
			couple(&all[k]);
			give(&all[k]);
			take(&all[k]);
		}
	for (long k = 0; k < n; k++) {
		must(all[k].leave(all[k].c) <= fmi2Warning, "leave initialisation");
		take(&all[k]);
	}
}

int main(int argc, char **argv)
{
	long wires;
	char scheme[16];
	must(scanf("steps %ld size %lf scheme %15s order %d substeps %d instances %ld", &steps, &h, scheme, &order, &substeps, &n) == 6, "head");
	must(order < POINTS, "the order is too high");
	long processes = strcmp(scheme, "processes") == 0 ? substeps : 0;
	must(processes <= n && (processes == 0 || order == 0), "count of processes");
	int sequence = strcmp(scheme, "sequence") == 0, implicit = strcmp(scheme, "fixed-point") == 0;
	dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL); /* some FMUs use it and do not say so */
	behind.middle = calloc((size_t)substeps + 1, sizeof *behind.middle);
	ahead.middle = calloc((size_t)substeps + 1, sizeof *ahead.middle);
	all = calloc((size_t)n, sizeof *all);
	shared = calloc((size_t)n, sizeof *shared), child = calloc((size_t)n, sizeof *child);
	for (long k = 0; k < n; k++)
		load(&all[k], k, implicit);
	must(scanf(" connections %ld", &wires) == 1, "connections");
	for (long w = 0; w < wires; w++) {
		size_t a, i, b, o;
		must(scanf("%zu %zu %zu %zu", &a, &i, &b, &o) == 4, "connection");
		all[a].inputs[i].from = &all[b].y[o];
		all[a].inputs[i].source = (long)b;
	}
	initialise();
	must(scanf(" bonds %ld", &nbonds) == 1 && (nbonds == 0 || order == 0), "bonds go with order 0");
	bonds = calloc((size_t)nbonds + 1, sizeof *bonds);
	for (long b = 0; b < nbonds; b++) {
		size_t a, effort, flow_in, c, flow, effort_in;
		must(scanf("%zu %zu %zu %zu %zu %zu %lf", &a, &effort, &flow_in, &c, &flow, &effort_in, &bonds[b].sign) == 7, "bond");
		bonds[b].effort = &all[a].y[effort], bonds[b].flow = &all[c].y[flow];
		bonds[b].effort_in = &all[c].u[effort_in], bonds[b].flow_in = &all[a].u[flow_in];
	}
	FILE *out = argc > 1 ? fopen(argv[1], "wb") : NULL;

	if (strcmp(scheme, "threads") == 0) {
		pthread_t other;
		must(out == NULL && order == 0 && nbonds == 0, "threads do without file, order and bonds");
		must(pthread_create(&other, NULL, half, &all) == 0, "thread");
		half(NULL);
		must(pthread_join(other, NULL) == 0, "thread");
		steps = 0;
	}
	if (processes > 0) {
		for (long k = 0; k < processes; k++)
			part(k, processes);
		apart(processes);
		steps = 0;
	}
	if (order > 0)
		remember();
	for (long s = 0; s < steps; s++) {
		double t = (double)s * h;
		if (order > 0 && s <= order)
			points((int)s + 1);
		if (implicit) {
			solve(t);
		} else if (!sequence) {
			if (order == 0)
				for (long k = 0; k < n; k++)
					couple(&all[k]);
			for (long k = 0; k < n; k++)
				advance(&all[k], t);
		} else {
			for (long k = 0; k < n; k++) {
				if (order == 0)
					couple(&all[k]);
				else
					arrive(k);
				advance(&all[k], t);
			}
		}
		if (nbonds > 0)
			measure();
		if (order > 0)
			remember();
		if (out)
			for (long k = 0; k < n; k++)
				must(fwrite(all[k].y, sizeof(double), all[k].nout, out) == all[k].nout, "write");
	}
	if (out)
		must(fclose(out) == 0, "close");
	for (long k = 0; k < n; k++)
		for (size_t o = 0; o < all[k].nout; o++)
			printf("%.17g\n", all[k].y[o]);
	for (long b = 0; b < nbonds; b++)
		printf("%.17g\n", bonds[b].energy);
	return 0;
}
