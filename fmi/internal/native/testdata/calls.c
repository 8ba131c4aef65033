/* Functions with the arguments of FMI 3.0, which note what they receive. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* noted has for each call the number of its arguments and the arguments, as in Noted of the test. */
EXPORT uint64_t noted[256];
static int n;
#define NOTE(x) (noted[n++] = (uint64_t)(x))

static void real(double x) { memcpy(&noted[n++], &x, sizeof x); }

typedef uint64_t u64;
/* Arguments are changed, because their place on the stack belongs to the function. */
typedef volatile u64 v64;

EXPORT int clear_notes(void) {
  memset(noted, 0, sizeof noted);
  return n = 0;
}
EXPORT int ints7(v64 a, v64 b, v64 c, v64 d, v64 e, v64 f, v64 g) {
  NOTE(7), NOTE(a), NOTE(b), NOTE(c), NOTE(d), NOTE(e), NOTE(f), NOTE(g);
  g = 0;
  return 0;
}
EXPORT int ints8(v64 a, v64 b, v64 c, v64 d, v64 e, v64 f, v64 g, v64 h) {
  NOTE(8), NOTE(a), NOTE(b), NOTE(c), NOTE(d), NOTE(e), NOTE(f), NOTE(g), NOTE(h);
  g = h = 0;
  return 1;
}
EXPORT int ints9(v64 a, v64 b, v64 c, v64 d, v64 e, v64 f, v64 g, v64 h, v64 i) {
  NOTE(9), NOTE(a), NOTE(b), NOTE(c), NOTE(d), NOTE(e), NOTE(f), NOTE(g), NOTE(h), NOTE(i);
  g = h = i = 0;
  return 0;
}
EXPORT int ints12(v64 a, v64 b, v64 c, v64 d, v64 e, v64 f, v64 g, v64 h, v64 i, v64 j, v64 k, v64 l) {
  NOTE(12), NOTE(a), NOTE(b), NOTE(c), NOTE(d), NOTE(e), NOTE(f), NOTE(g), NOTE(h), NOTE(i), NOTE(j), NOTE(k), NOTE(l);
  g = h = i = j = k = l = 0;
  return (uintptr_t)__builtin_frame_address(0) % 16; /* 0 where the stack is aligned */
}

/* instantiate has the arguments of fmi3InstantiateCoSimulation. */
EXPORT void *instantiate(const char *name, const char *token, const char *resources, bool visible, bool logging, bool events,
                         bool early, const uint32_t *vr, size_t count, void *environment, void (*log)(void), void (*update)(void)) {
  NOTE(12), NOTE((uintptr_t)name), NOTE((uintptr_t)token), NOTE((uintptr_t)resources), NOTE(visible), NOTE(logging);
  NOTE(events), NOTE(early), NOTE((uintptr_t)vr), NOTE(count), NOTE((uintptr_t)environment), NOTE((uintptr_t)log);
  NOTE((uintptr_t)update);
  return NULL;
}

/* do_step has the arguments of fmi3DoStep. */
EXPORT int do_step(void *instance, double t, double h, bool no_restore, bool *event, bool *terminate, bool *early, double *last) {
  NOTE(4), NOTE((uintptr_t)instance), real(t), real(h), NOTE(no_restore);
  *event = true, *terminate = false, *early = true, *last = t + h;
  return 0;
}

/* initialize has the arguments of fmi3EnterInitializationMode. */
EXPORT int initialize(void *instance, bool tolerance_defined, double tolerance, double start, bool stop_defined, double stop) {
  NOTE(6), NOTE((uintptr_t)instance), NOTE(tolerance_defined), real(tolerance), real(start), NOTE(stop_defined), real(stop);
  return 0;
}

typedef void (*logger)(void *environment, int status, const char *category, const char *message);

EXPORT int say(logger log, void *environment, int status, const char *category, const char *message) {
  log(environment, status, category, message);
  return 0;
}

static struct { logger log; void *environment; int status; const char *category, *message; } later;
static void *run(void *unused) {
  (void)unused;
  say(later.log, later.environment, later.status, later.category, later.message);
  return NULL;
}
/* say_thread logs in a thread of its own. */
EXPORT int say_thread(logger log, void *environment, int status, const char *category, const char *message) {
  pthread_t t;
  later.log = log, later.environment = environment, later.status = status, later.category = category, later.message = message;
  return pthread_create(&t, NULL, run, NULL) || pthread_join(t, NULL);
}

#ifndef _WIN32
/* say_forked logs in a forked process, and returns its exit code. */
EXPORT int say_forked(logger log, void *environment, int status, const char *category, const char *message) {
  pid_t child = fork();
  if (child == 0) {
    log(environment, status, category, message);
    _exit(0);
  }
  int code = 0;
  return waitpid(child, &code, 0) == child && WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}
#endif
