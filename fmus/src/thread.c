#define _GNU_SOURCE /* nanosleep */
#include "thread.h"

#include <stdlib.h>

#ifdef _WIN32
#include <windows.h>
#else
#include <pthread.h>
#include <time.h>
#endif

typedef struct {
	void (*run)(void *);
	void *argument;
} Call;

static void make(void *p) {
	Call c = *(Call *)p;
	free(p);
	c.run(c.argument);
}

#ifdef _WIN32
static DWORD WINAPI thread(void *p) {
	make(p);
	return 0;
}
#else
static void *thread(void *p) {
	make(p);
	return NULL;
}
#endif

int thread_start(void (*run)(void *), void *argument) {
	Call *c = malloc(sizeof *c);
	if (!c) return 0;
	c->run = run;
	c->argument = argument;
#ifdef _WIN32
	HANDLE h = CreateThread(NULL, 0, thread, c, 0, NULL);
	if (h) {
		CloseHandle(h);
		return 1;
	}
#else
	pthread_t id;
	if (pthread_create(&id, NULL, thread, c) == 0) {
		pthread_detach(id);
		return 1;
	}
#endif
	free(c);
	return 0;
}

void thread_sleep(int milliseconds) {
#ifdef _WIN32
	Sleep((DWORD)milliseconds);
#else
	struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
	nanosleep(&t, NULL);
#endif
}
