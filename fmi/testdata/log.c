/* Messages for the logger: each case goes to snprintf and to the logger alike. */
#include "fmi2.h"
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

typedef struct { const fmi2CallbackFunctions *cb; } head; /* of struct probe */

#define SAY(...)                                                                                     \
  do {                                                                                               \
    if (k == n++) {                                                                                  \
      snprintf(buf, size, __VA_ARGS__);                                                              \
      cb->logger(cb->componentEnvironment, "log", fmi2OK, "format", __VA_ARGS__);                             \
      return 1;                                                                                      \
    }                                                                                                \
  } while (0)

/* log_case formats case k; 0 behind the last one. */
EXPORT int log_case(head *h, int k, char *buf, size_t size) {
  const fmi2CallbackFunctions *cb = h->cb;
  int n = 0;
  SAY("plain");
  SAY("100%% of %d", 7);
  SAY("%d %i %u %x %X %o", -1, 2147483647, 4294967295u, 48879, 48879, 511);
  SAY("%5d|%-5d|%05d|%+d|% d|%+5d|%-+5d|", 42, 42, 42, 42, 42, 42, 42);
  SAY("%.3d|%5.3d|%-8.4d|%08.3d|%.0d|%.0d", 5, 5, 5, 5, 0, 7);
  SAY("%#x %#X %#o %#x %#o|%#8x|%#08x|%#-8x|%#08o|%#.4o", 255, 255, 8, 0, 0, 255, 255, 255, 8, 8);
  SAY("%hhd %hhu %hd %hu", (int)(signed char)-3, 200, (int)(short)-300, 60000);
  SAY("%ld %lu %lld %llu %zu %zd %jd %td", -5L, 5UL, -9000000000LL, 18446744073709551615ULL, (size_t)12, (size_t)13,
      (intmax_t)-14, (ptrdiff_t)15);
  SAY("%c%c|%3c|%-3c|", 'o', 'k', 'x', 'y');
  SAY("%s|%10s|%-10s|%.2s|%5.1s|%s", "abc", "abc", "abc", "abc", "abc", "last");
  SAY("%*d|%-*d|%*d|%.*f|%*.*f", 6, 1, 6, 2, -6, 3, 3, 3.14159, 10, 2, 2.71828);
  SAY("%f %e %g %F %E %G", 1.5, 1.5, 1.5, 1.5, 1.5, 1.5);
  SAY("%g %g %g %g %g %g %g", 0.0001, 0.00001, 123456., 1234567., 1e100, 0., -0.);
  SAY("%g %g %g %g", 100000., 999999.5, 0.1, 1. / 3);
  SAY("%.0f %.0e %.0g %#.0f %#.0e %#g %#.3g", 2.5, 2.5, 2.5, 2.5, 2.5, 1., 1.);
  SAY("%.15g %.17g %.3g %.10e", 0.1, 0.1, 12345.678, 1e-300);
  SAY("%10.3f|%-10.3f|%010.3f|%+.2f|% .2f|%+010.2e", 3.14159, 3.14159, -3.14159, 2., 2., 12345.678);
  SAY("%f %e %g %F|%8g|%-8g|%08g|%+g", INFINITY, -INFINITY, INFINITY, INFINITY, INFINITY, -INFINITY, INFINITY, INFINITY);
  SAY("%g %G %f", fabs(NAN), fabs(NAN), fabs(NAN));
  SAY("%a %A %.2a %a %a", 1.5, -0.1, 3.14159, 0., 1e10);
  SAY("%d %g %d %g %d %g %d %g %d %g %d %g %d %g %d %g %d %g %d %g", 1, .1, 2, .2, 3, .3, 4, .4, 5, .5, 6, .6, 7, .7, 8,
      .8, 9, .9, 10, 1.);
  SAY("%g %g %g %g %g %g %g %g %g %g %d %s", 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11, "twelve");
#if !defined(__aarch64__) || defined(__APPLE__) /* elsewhere a quad in a vector register */
  SAY("%Lf %d %Lg %g", (long double)1.25, 3, (long double)-1e10, 4.5);
  SAY("%g %g %g %g %g %g %g %g %g %d %d %d %d %Lg %d %Lg", 1., 2., 3., 4., 5., 6., 7., 8., 9., 1, 2, 3, 4, (long double)5.5,
      6, (long double)7.5);
#endif
  SAY("%p", (void *)0x1234abcd);
  SAY("%ls|%5ls|", L"wide", L"w");
  SAY("%-6s|%+.3e|%hhd|%6.2f%%", "ab", 12345.678, 77, 99.5);
  SAY("tab\there %s", "and\nnewline");
  SAY("ends in %% %d %%", 3);
  return 0;
}

EXPORT void log_null(head *h) { h->cb->logger(h->cb->componentEnvironment, NULL, fmi2Warning, NULL, "no %s, no category", "name"); }
EXPORT void log_nulltext(head *h) { h->cb->logger(h->cb->componentEnvironment, "log", fmi2Warning, "c", NULL); }
EXPORT void log_percent_n(head *h) {
  int x = 77;
  h->cb->logger(h->cb->componentEnvironment, "log", fmi2OK, "c", "a%nb%d", &x, x);
}
EXPORT void log_reference(head *h) {
  h->cb->logger(h->cb->componentEnvironment, "log", fmi2OK, "c", "#r0# ## #i%d# #b7# #s0# #r99# #x1# #r# 50%% #", 5);
}
EXPORT void log_nullstring(head *h) { h->cb->logger(h->cb->componentEnvironment, "log", fmi2OK, "c", "%s|%d", (char *)NULL, 3); }
EXPORT void log_wrong(head *h, const char *name) { h->cb->logger((void *)h, name, fmi2OK, "c", "wrong %d", 1); }
EXPORT void log_many(head *h, int n) {
  for (int i = 0; i < n; i++) h->cb->logger(h->cb->componentEnvironment, "log", fmi2OK, "c", "line %d", i);
}
EXPORT void log_bytes(head *h) { h->cb->logger(h->cb->componentEnvironment, "log", fmi2OK, "c", "bad \xff byte"); }
EXPORT void log_wide(head *h) { h->cb->logger(h->cb->componentEnvironment, "log", fmi2OK, "c", "%2000000000d|%.2000000000d", 1, 2); }

static int lines;
static void *many(void *p) {
  log_many(p, lines);
  return NULL;
}
/* log_threads logs from threads of the FMU's own, one with a small stack. */
EXPORT void log_threads(head *h, int n, int each) {
  lines = each;
  pthread_t t[16];
  for (int i = 0; i < n; i++) {
    pthread_attr_t a;
    pthread_attr_init(&a);
    if (i == 0) pthread_attr_setstacksize(&a, 64 << 10);
    pthread_create(&t[i], &a, many, h);
  }
  for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
}

static struct { pthread_t t; volatile int go; const fmi2CallbackFunctions *p; } late;
static void *later(void *unused) {
  (void)unused;
  while (!late.go) ;
  late.p->logger(late.p->componentEnvironment, (const char *)1, fmi2OK, "c", "late %d", 1);
  return NULL;
}
/* log_late starts a thread that logs when log_go says so, with a name that must not be read. */
EXPORT void log_late(head *h) {
  late.go = 0;
  late.p = h->cb;
  pthread_create(&late.t, NULL, later, NULL);
}
EXPORT void log_go(void) {
  late.go = 1;
  pthread_join(late.t, NULL);
}
