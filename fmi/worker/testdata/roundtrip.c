/* What a request and its answer cost between two processes that wait for each
   other on futexes in shared memory, and do nothing else: prints the median and
   the 99th percentile of a number of round trips, in ns. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

typedef struct {
	_Alignas(64) atomic_uint posted, asleep;
	_Alignas(64) atomic_uint answered, waits;
} shared;

static void await(atomic_uint *word, unsigned was, atomic_uint *sleeping)
{
	while (atomic_load(word) == was) {
		atomic_store(sleeping, 1);
		syscall(SYS_futex, word, FUTEX_WAIT, was, NULL, NULL, 0);
		atomic_store(sleeping, 0);
	}
}

static void post(atomic_uint *word, unsigned v, atomic_uint *sleeping)
{
	atomic_store(word, v);
	if (atomic_load(sleeping)) syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static int by_size(const void *a, const void *b) { return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b); }

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 10000;
	double *took = malloc(n * sizeof *took);
	shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (n < 1 || !took || s == MAP_FAILED) return 1;
	pid_t child = fork();
	if (child < 0) return 1;
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (unsigned k = 0;; k++) {
			await(&s->posted, k, &s->asleep);
			post(&s->answered, k + 1, &s->waits);
		}
	}
	for (int k = 0; k < n; k++) {
		struct timespec a, b;
		clock_gettime(CLOCK_MONOTONIC, &a);
		post(&s->posted, k + 1, &s->asleep);
		await(&s->answered, k, &s->waits);
		clock_gettime(CLOCK_MONOTONIC, &b);
		took[k] = (b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec);
	}
	kill(child, SIGKILL);
	wait(NULL);
	qsort(took, n, sizeof *took, by_size);
	printf("%.0f %.0f\n", took[n / 2], took[n - 1 - n / 100]);
	return 0;
}
