/* A loop that wakes at absolute deadlines by clock_nanosleep, and tells how late it was:
 * what the operating system gives a program that does nothing else.
 *
 * loop PERIOD_NS COUNT prints the percentiles 50, 99, 99.9 and the worst in ns. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int compare(const void *a, const void *b) {
	long x = *(const long *)a, y = *(const long *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv) {
	if (argc != 3) return 2;
	long period = atol(argv[1]), n = atol(argv[2]);
	long *late = malloc(sizeof *late * (size_t)n);
	if (period <= 0 || n <= 0 || !late) return 2;
	for (long i = 0; i < n; i++) late[i] = 0; /* the pages are there before the loop */
	struct timespec due, now;
	clock_gettime(CLOCK_MONOTONIC, &due);
	for (long i = 0; i < n; i++) {
		due.tv_nsec += period;
		while (due.tv_nsec >= 1000000000) {
			due.tv_nsec -= 1000000000;
			due.tv_sec++;
		}
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR) {
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
		late[i] = (now.tv_sec - due.tv_sec) * 1000000000L + (now.tv_nsec - due.tv_nsec);
	}
	qsort(late, (size_t)n, sizeof *late, compare);
	const double shares[] = {0.5, 0.99, 0.999, 1};
	for (int k = 0; k < 4; k++) {
		long rank = (long)(shares[k] * (double)n + 0.999999) - 1;
		printf("%ld\n", late[rank < 0 ? 0 : rank >= n ? n - 1 : rank]);
	}
	free(late);
	return 0;
}
