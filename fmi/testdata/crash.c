/* Functions that crash, or look as if they did. */
#define _GNU_SOURCE
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <pthread.h>

uintptr_t well(void) { return 42; }

uintptr_t writes(volatile int *p) { return *p = 1; }

static volatile double zero;

/* The exception is trapped, in the modes that the call leaves with. */
uintptr_t divides(void) {
  if (feenableexcept(FE_DIVBYZERO) == -1) raise(SIGFPE); /* a processor that traps none */
  return (uintptr_t)(1 / zero);
}

uintptr_t divides87(void) {
  volatile long double x = 1, z = zero;
  if (feenableexcept(FE_DIVBYZERO) == -1) raise(SIGFPE); /* a processor that traps none */
  x /= z;
  return (uintptr_t)(x + 1);
}

uintptr_t aborts(void) { abort(); }

static int deeper(int n) {
  volatile char frame[4096];
  frame[0] = n;
  return deeper(n + 1) + frame[0];
}

uintptr_t overflows(void) { return deeper(0); }

/* Jumps to nowhere with another stack pointer and all other registers spoilt. */
uintptr_t spoils(void) {
#if defined(__x86_64__)
  __asm__ volatile("xorl %%ebx,%%ebx; xorl %%ebp,%%ebp; xorl %%r12d,%%r12d; xorl %%r13d,%%r13d;"
                   "xorl %%r14d,%%r14d; xorl %%r15d,%%r15d; std; movq $16,%%rsp; jmp *%%r15" ::: "memory");
#else
  __asm__ volatile("mov x19,#0; mov x20,#0; mov x21,#0; mov x28,#0; mov x29,#0; mov x9,#16; mov sp,x9; br x19" ::: "memory");
#endif
  return 0;
}

/* A child that crashes is not this process. */
uintptr_t forks(void) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGALRM, SIG_DFL);
    alarm(5);
    raise(SIGSEGV);
    _exit(0);
  }
  waitpid(child, &status, 0);
  return child > 0;
}

static sigjmp_buf back;
static void handle(int s) { siglongjmp(back, s); }

/* Handles its own faults, and puts back what was there. */
uintptr_t handles(void) {
  struct sigaction own = {.sa_handler = handle, .sa_flags = SA_ONSTACK}, old;
  sigaction(SIGSEGV, &own, &old);
  int s = sigsetjmp(back, 1);
  if (s == 0) writes(0);
  sigaction(SIGSEGV, &old, 0);
  return s;
}

static void *aside(void *p) {
  writes(p);
  return 0;
}

uintptr_t crashesAside(void) {
  pthread_t t;
  pthread_create(&t, 0, aside, 0);
  pthread_join(t, 0);
  return 0;
}

/* Calls back, and crashes after it and, if told, in it. */
uintptr_t callsBack(uintptr_t (*f)(void)) { return f() + writes(0); }

/* Writes over what the allocator keeps, which ends the program with its lock held. */
uintptr_t spoilsHeap(void) {
  for (size_t k = 0; k < 100; k++) {
    char *p = malloc(40);
    for (size_t i = 40; i < 4096; i++) ((volatile char *)p)[i] = 0x41;
    free(malloc(2000 + 16 * k));
  }
  return 0;
}

#ifdef IN_LOADING
__attribute__((constructor)) static void early(void) { writes(0); }
#endif
