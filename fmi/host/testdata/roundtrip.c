/* Two processes exchange messages over TCP on loopback, as a run and a host do in a step: prints the median and the 99th
   percentile of the time of a round trip in ns. Arguments: number of round trips, bytes of a request, bytes of an answer. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char buffer[1 << 16];

static void all(int s, size_t n, int sends) {
	for (size_t done = 0; done < n;) {
		ssize_t k = sends ? write(s, buffer + done, n - done) : read(s, buffer + done, n - done);
		if (k <= 0) exit(sends);
		done += (size_t)k;
	}
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
	double d = *(const double *)a - *(const double *)b;
	return (d > 0) - (d < 0);
}

int main(int argc, char **argv) {
	size_t n = strtoul(argv[1], 0, 10), request = strtoul(argv[2], 0, 10), answer = strtoul(argv[3], 0, 10);
	int one = 1, l = socket(AF_INET, SOCK_STREAM, 0), s;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof a;
	if (argc != 4 || bind(l, (struct sockaddr *)&a, sizeof a) || listen(l, 1) || getsockname(l, (struct sockaddr *)&a, &size)) return 1;
	if (fork() == 0) {
		s = accept(l, 0, 0);
		setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		for (;;) {
			all(s, request, 0);
			all(s, answer, 1);
		}
	}
	s = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (connect(s, (struct sockaddr *)&a, sizeof a)) return 1;
	double *took = malloc(n * sizeof *took);
	for (size_t i = 0; i < n; i++) {
		double t = now();
		all(s, request, 1);
		all(s, answer, 0);
		took[i] = now() - t;
	}
	qsort(took, n, sizeof *took, compare);
	printf("%f %f\n", took[n / 2], took[n * 99 / 100]);
	return 0;
}
