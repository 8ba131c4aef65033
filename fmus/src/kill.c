#define _GNU_SOURCE /* kill, RTLD_DEFAULT */
#include "kill.h"
#include "thread.h"

#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#define NOUSER /* whose INPUT is not ours */
#include <windows.h>
#else
#include <dlfcn.h>
#include <unistd.h>
#include <unwind.h>
#endif

static int *volatile nowhere; /* volatile: else the compiler knows what comes of it */

static void segfault(void *unused) {
	(void)unused;
	*nowhere = 1;
}

static void illegal_instruction(void) {
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("ud2");
#elif defined(__aarch64__)
	__asm__ volatile(".long 0"); /* udf; __builtin_trap is a breakpoint there */
#else
	__builtin_trap();
#endif
}

static volatile int deep = 1;

/* overflow fills a page a call. What follows on the call needs the page, so that
 * no compiler makes a loop of it. */
static int overflow(const volatile char *above) {
	volatile char page[4096];
	page[0] = above[0] + 1;
	return deep ? overflow(page) + page[0] : page[0];
}

static void kill_itself(void) {
#ifdef _WIN32
	TerminateProcess(GetCurrentProcess(), 9);
#else
	kill(getpid(), SIGKILL);
	for (;;) thread_sleep(1000); /* it does not take long */
#endif
}

/* throw_exception does what the compiler makes of
 *
 *     throw std::runtime_error("thrown on purpose");
 *
 * in a C++ FMU, by the C++ runtime of this machine, which a C compiler does not
 * link: the library is looked for when it is needed. Nobody catches, so that the
 * runtime calls std::terminate, and this abort. */
#ifdef _WIN32

static void throw_exception(void) {
	RaiseException(0x20474343, 0, 0, NULL); /* that of g++, and as little caught */
	abort();
}

#else

static void *found(const char *const libraries[], const char *symbol) {
	for (; *libraries; libraries++) {
		void *library = dlopen(*libraries, RTLD_NOW);
		void *s = library ? dlsym(library, symbol) : NULL;
		if (s) return s;
	}
	return NULL;
}

static void throw_exception(void) {
	static const char *const cxx[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1", "/usr/lib/libc++.1.dylib",
	                                  "/usr/lib/libc++abi.dylib", NULL};
	void *(*allocate)(size_t);
	void (*construct)(void *, const char *), (*destruct)(void *), (*raise_)(void *, void *, void (*)(void *));
	void *type = found(cxx, "_ZTISt13runtime_error");
	*(void **)&allocate = found(cxx, "__cxa_allocate_exception");
	*(void **)&construct = found(cxx, "_ZNSt13runtime_errorC1EPKc");
	*(void **)&destruct = found(cxx, "_ZNSt13runtime_errorD1Ev");
	*(void **)&raise_ = found(cxx, "__cxa_throw");
	if (type && allocate && construct && destruct && raise_) {
		void *e = allocate(64); /* more than the two pointers that it has everywhere */
		construct(e, "thrown on purpose");
		raise_(e, type, destruct);
	}
	/* Without a C++ runtime: its unwinder, and what the runtime does when that
	 * comes back because there is no handler. */
	static const char *const unwinders[] = {"libgcc_s.so.1", "libunwind.so.1", "/usr/lib/libSystem.B.dylib", NULL};
	static struct _Unwind_Exception e;
	memcpy(&e.exception_class, "MACRSTEP", 8); /* a language that nobody knows */
	_Unwind_Reason_Code (*raise_foreign)(struct _Unwind_Exception *);
	*(void **)&raise_foreign = found(unwinders, "_Unwind_RaiseException");
	if (raise_foreign) raise_foreign(&e);
	fputs("terminate called after throwing an exception on purpose\n", stderr);
	abort();
}

#endif

/* Hog is what became of taking memory. */
typedef struct {
	int taken, refused; /* MiB; whether there was no more */
} Hog;

/* take_memory takes and touches memory, and keeps it for ever. When no more is
 * given it gives back one block, so that there is room to say so. */
static Hog take_memory(int most) {
	enum { BLOCK = 16 };
	Hog h = {0, 0};
	void *last = NULL;
	while (most == 0 || h.taken < most) {
		void *block = malloc((size_t)BLOCK << 20);
		if (!block) {
			h.refused = 1;
			free(last);
			break;
		}
		memset(block, 0xa5, (size_t)BLOCK << 20);
		__asm__ volatile("" : : "r"(block) : "memory"); /* else none of it need be done */
		last = block;
		h.taken += BLOCK;
	}
	return h;
}

static Hog strike_process(Instance *m, int fault, int most) {
	Hog none = {0, 0};
	if (kill_linux(m, fault)) return none;
	switch (fault) {
	case Fault_Segfault: segfault(NULL); break;
	case Fault_SegfaultThread:
		if (!thread_start(segfault, NULL)) segfault(NULL);
		for (;;) thread_sleep(1000);
	case Fault_Abort: abort();
	case Fault_Throw: throw_exception(); break;
	case Fault_IllegalInstruction: illegal_instruction(); break;
	case Fault_Exit0: exit(0);
	case Fault_Exit7: exit(7);
	case Fault_StackOverflow: none.taken = overflow("") & 0; break;
	case Fault_EndlessLoop:
		while (deep) {
		}
		break;
	case Fault_EndlessSleep:
		for (;;) thread_sleep(1000);
	case Fault_KillItself: kill_itself(); break;
	case Fault_MemoryHog: return take_memory(most);
	}
	return none;
}

/* told gives what a function returns that comes back. */
static Status told(Instance *m, int fault, Hog h) {
	if (!m || fault != Fault_MemoryHog) return StatusOK;
	if (!h.refused) {
		SAY(m, StatusWarning, "logEvents", "%d MiB of memory are taken for ever", h.taken);
		return StatusOK;
	}
	SAY(m, StatusError, "logStatusError", "memory is refused after %d MiB", h.taken);
	return StatusError;
}

Status kill_process(Instance *m, int fault, int most) { return told(m, fault, strike_process(m, fault, most)); }

#if FMU_FMI == 3
void say(const Instance *m, Status status, const char *category, const char *format, ...) {
	char text[MAX_MESSAGE] = "";
	va_list arguments;
	va_start(arguments, format);
	if (format) vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	LOGGER(&m->callbacks, m->callbacks.componentEnvironment, m->name, status, category, format ? text : NULL);
}
#endif

/* Attack is a fault that waits for the logger to run. */
typedef struct {
	Instance *m;
	int fault, most;
	int speaking, over;
	Hog hog;
} Attack;

static void attack(void *p) {
	Attack *a = p;
	while (!__atomic_load_n(&a->speaking, __ATOMIC_ACQUIRE)) {
	}
	a->hog = strike_process(a->m, a->fault, a->most);
	__atomic_store_n(&a->over, 1, __ATOMIC_RELEASE);
}

Status kill_in_logger(Instance *m, int fault, int most) {
	if (fault == Fault_Segfault) {
		const char *text = (const char *)((uintptr_t)0 - 4096); /* the page is never that of a process */
#if FMU_FMI == 3
		LOGGER(&m->callbacks, m->callbacks.componentEnvironment, m->name, StatusWarning, "logEvents", text);
#else
		SAY(m, StatusWarning, "logEvents", "a string that cannot be read: %s", text);
#endif
		return StatusOK;
	}
	int endless = fault == Fault_EndlessLoop || fault == Fault_EndlessSleep;
	Attack a = {m, fault, most, 0, 0, {0, 0}};
	if (!endless && !thread_start(attack, &a)) {
		SAY(m, StatusError, "logStatusError", "there can be no thread");
		return StatusError;
	}
	for (int i = 0; !__atomic_load_n(&a.over, __ATOMIC_ACQUIRE); i++) {
		__atomic_store_n(&a.speaking, 1, __ATOMIC_RELEASE);
		SAY(m, StatusWarning, "logEvents", "message %d before the end", i);
		if (fault != Fault_EndlessLoop && i > 20) thread_sleep(1);
	}
	return told(m, fault, a.hog);
}
