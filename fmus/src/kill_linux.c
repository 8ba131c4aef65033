/* Faults that end, hang or damage the process and that only Linux has. */
#define _GNU_SOURCE
#include "kill.h"
#include "thread.h"

#ifndef __linux__

int kill_linux(Instance *m, int fault) {
	(void)m;
	(void)fault;
	return 0;
}

#else

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* Memory. */

static int *volatile nowhere;

static void segfault(void) { *nowhere = 1; }

/* unreadable gives a text in memory that cannot be read any more, as that which was given
 * back. A text without an end reaches up to such memory. */
static char *unreadable(int unended) {
	size_t n = page();
	char *p = mmap(NULL, 2 * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) return NULL;
	memset(p, 'x', 2 * n);
	mprotect(unended ? p + n : p, n, PROT_NONE);
	return p;
}

/* log_unreadable logs what cannot be read. */
static void log_unreadable(Instance *m, int fault) {
	char *text = unreadable(fault == Fault_UnendedText);
	if (!m || !m->callbacks.logger || !text) {
		segfault();
		return;
	}
	switch (fault) {
	case Fault_FreedArgument: SAY(m, StatusWarning, "logEvents", "a text that was freed: %s", text); break;
	case Fault_FreedName: LOGGER(&m->callbacks, NULL, text, StatusWarning, "logEvents", "a name that was freed"); break;
	default: LOGGER(&m->callbacks, m->callbacks.componentEnvironment, m->name, StatusWarning, "logEvents", text);
	}
}

static void bus_error(void) {
	int fd = memfd_create("short", 0);
	volatile char *p = mmap(NULL, page(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	p[0] = 1; /* the file is empty */
}

static volatile int zero;

static void divide_by_zero(void) {
#ifdef __x86_64__
	zero = 7 / zero;
#else
	raise(SIGFPE); /* where a division does not trap */
#endif
}

static void jump_nowhere(void) {
	void (*volatile there)(void) = NULL;
	there();
}

static void free_twice(void) {
	char *volatile p = malloc(5000); /* too large for the cache of the thread, which may forgive */
	char *volatile behind = malloc(10);
	free(p);
	free(p);
	free(behind);
}

static void unmap_stack(void) {
	uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(page() - 1);
	munmap((void *)(here - 4 * page()), 8 * page());
}

static volatile int deep = 1;

static int overflow(const volatile char *above) {
	volatile char all[4096];
	all[0] = above[0] + 1;
	return deep ? overflow(all) + all[0] : all[0];
}

/* protect_heap takes Go's heap away, which begins at a multiple of 4 MiB below all libraries. */
static void protect_heap(void) {
	char line[600], w;
	unsigned long from, to;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof line, maps))
		if (sscanf(line, "%lx-%lx r%c", &from, &to, &w) == 3 && w == 'w' && from % (4 << 20) == 0 && from > 0xffffffff && from < 0x700000000000) mprotect((void *)from, to - from, PROT_NONE);
	if (maps) fclose(maps);
}

/* Signals. */

static void without_stack(void) {
	stack_t off = {.ss_flags = SS_DISABLE};
	sigaltstack(&off, NULL);
}

/* with_tiny_stack makes the stack of signal handlers the least that the system takes, above
 * memory that cannot be written to. */
static void with_tiny_stack(void) {
	char *p = mmap(NULL, 8 * page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t tiny = {.ss_sp = p + page()};
	if (p == MAP_FAILED) return;
	mprotect(p, page(), PROT_NONE);
	for (tiny.ss_size = 2048; tiny.ss_size < 7 * page() && sigaltstack(&tiny, NULL) != 0;) tiny.ss_size += 512;
}

static void nothing(int signal) { (void)signal; }

static void block(int number) {
	sigset_t s;
	if (number) {
		sigemptyset(&s);
		sigaddset(&s, number);
	} else {
		sigfillset(&s);
	}
	pthread_sigmask(SIG_BLOCK, &s, NULL);
}

static void ignore_signals(void) {
	for (int s = 1; s < NSIG; s++) signal(s, SIG_IGN);
}

/* pass lets so much time pass, of the processor or of the clock on the wall. */
static void pass(clockid_t clock, long milliseconds) {
	struct timespec begin, now;
	clock_gettime(clock, &begin);
	do {
		if (clock == CLOCK_MONOTONIC) thread_sleep(10);
		else for (volatile int k = 0; k < 1000000; k++); /* in user mode, which a timer counts */
		clock_gettime(clock, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < milliseconds);
}

/* tick has a signal sent each millisecond of processor time, from now on for ever. */
static void tick(int timer) {
	struct itimerval every = {{0, 1000}, {0, 1000}};
	setitimer(timer, &every, NULL);
	pass(CLOCK_PROCESS_CPUTIME_ID, 200);
}

/* jump_out leaves the logger by a jump out of the handler of the signal that an unreadable
 * text raises in it. */
static sigjmp_buf before;

static void jump(int signal) {
	(void)signal;
	siglongjmp(before, 1);
}

static void jump_out(Instance *m) {
	if (!m || sigsetjmp(before, 1)) return;
	signal(SIGSEGV, jump);
	log_unreadable(m, Fault_FreedText);
}

/* Ends. */

static void exit_0(void *unused) {
	(void)unused;
	exit(0);
}

static void overflow_thread(void *unused) {
	(void)unused;
	overflow("");
}

static void in_thread(void (*run)(void *)) {
	if (!thread_start(run, NULL)) run(NULL);
	for (;;) thread_sleep(1000);
}

/* kill_parent kills the parent if it is the same program, as the engine is for an isolated
 * FMU; another is none of ours. */
static void kill_parent(void) {
	char name[60], own[4096], other[4096];
	snprintf(name, sizeof name, "/proc/%d/exe", (int)getppid());
	ssize_t n = readlink("/proc/self/exe", own, sizeof own);
	if (n > 0 && readlink(name, other, sizeof other) == n && memcmp(own, other, (size_t)n) == 0) kill(getppid(), SIGKILL);
}

static void kill_group(void) {
	if (getpgrp() == getpid()) kill(0, SIGKILL); /* a foreign group is none of ours */
	kill(getpid(), SIGKILL);
}

/* Limits and files. */

static void limit(int what, rlim_t most) {
	struct rlimit l = {most, most};
	setrlimit(what, &l);
}

static void use_up_files(void) {
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur > 4096) { /* to be quick */
		l.rlim_cur = 4096;
		setrlimit(RLIMIT_NOFILE, &l);
	}
	while (open("/dev/null", O_RDONLY) >= 0) {
	}
}

static void close_files(int from, int to) {
	if (syscall(SYS_close_range, from, to, 0) == 0) return;
	for (int fd = from; fd <= to && fd < 1 << 16; fd++) close(fd);
}

/* scribble_files writes to all files from 3 on, but not to memory or to what is not a file or
 * a pipe; or it cuts them. */
static void scribble_files(int cut) {
	struct stat s;
	for (int fd = 3; fd < 1024; fd++) {
		if (fstat(fd, &s) != 0 || !(S_ISREG(s.st_mode) || S_ISFIFO(s.st_mode)) || s.st_nlink == 0) continue;
		if (cut ? ftruncate(fd, 0) : write(fd, "{lost\n", 6)) continue;
	}
}

/* hold_stream has a thread wait for a line for ever, which holds the stream that it reads. */
static volatile int waiting;

static void read_line(void *unused) {
	int ends[2];
	(void)unused;
	FILE *f = pipe(ends) == 0 ? fdopen(ends[0], "r") : NULL;
	if (!f) return;
	flockfile(f);
	waiting = 1;
	while (fgetc(f) != EOF) {
	}
}

static void hold_stream(void) {
	if (waiting || !thread_start(read_line, NULL)) return;
	while (!waiting) thread_sleep(1);
}

/* remove_folder removes the file of the library, and the folder it is in, which becomes the
 * working directory before. */
static void remove_folder(void) {
	Dl_info here;
	char path[4096];
	if (!dladdr((void *)remove_folder, &here) || strlen(here.dli_fname) >= sizeof path) return;
	strcpy(path, here.dli_fname);
	char *end = strrchr(path, '/');
	if (!end || end == path) return;
	unlink(path);
	*end = 0;
	if (chdir(path) == 0) rmdir(path);
}

/* Processes. Those that wait for a child say how it ended. */

static void tell(Instance *m, pid_t child) {
	int status = 0;
	waitpid(child, &status, 0);
	if (m) SAY(m, StatusWarning, "logEvents", "the child ended by %d with %d", WTERMSIG(status), WEXITSTATUS(status));
}

static void fork_off(Instance *m, int fault) {
	pid_t child = fork();
	if (child < 0) return;
	if (child == 0) {
		switch (fault) {
		case Fault_ForkReturn: return;
		case Fault_ForkExec:
			execl("/there/is/no/such/program", "program", (char *)NULL);
			exit(1);
		case Fault_ForkCrash: segfault(); break;
		case Fault_ForkDaemon:
			setsid();
			if (fork()) _exit(0);
		}
		for (;;) pause();
	}
	if (fault != Fault_ForkSleep) tell(m, child);
}

int kill_linux(Instance *m, int fault) {
	switch (fault) {
	case Fault_FreedText: case Fault_FreedArgument: case Fault_FreedName: case Fault_UnendedText: log_unreadable(m, fault); break;
	case Fault_BusError: bus_error(); break;
	case Fault_DivideByZero: divide_by_zero(); break;
	case Fault_JumpNowhere: jump_nowhere(); break;
	case Fault_FreeTwice: free_twice(); break;
	case Fault_UnmapStack: unmap_stack(); break;
	case Fault_StackOverflowThread: in_thread(overflow_thread);
	case Fault_SegfaultWithoutStack: without_stack(); segfault(); break;
	case Fault_SegfaultTinyStack: with_tiny_stack(); segfault(); break;
	case Fault_SegfaultIgnored: signal(SIGSEGV, SIG_IGN); segfault(); break;
	case Fault_SegfaultBlocked: block(SIGSEGV); segfault(); break;
	case Fault_SegfaultHandled: signal(SIGSEGV, nothing); segfault(); break;
	case Fault_AbortIgnored: signal(SIGABRT, SIG_IGN); block(SIGABRT); abort();
	case Fault_RaiseQuit: raise(SIGQUIT); break;
	case Fault_RaiseSys: raise(SIGSYS); break;
	case Fault_RaiseTerm: raise(SIGTERM); break;
	case Fault_RaiseInt: raise(SIGINT); break;
	case Fault_RaiseHup: raise(SIGHUP); break;
	case Fault_RaiseBus: raise(SIGBUS); break;
	case Fault_RaiseTrap: raise(SIGTRAP); break;
	case Fault_RaiseStkflt: raise(SIGSTKFLT); break;
	case Fault_RaiseXCPU: raise(SIGXCPU); break;
	case Fault_RaisePipe: raise(SIGPIPE); break;
	case Fault_Alarm: alarm(1); pass(CLOCK_MONOTONIC, 1200); break;
	case Fault_ProfileTimer: tick(ITIMER_PROF); break;
	case Fault_VirtualTimer: tick(ITIMER_VIRTUAL); break;
	case Fault_ExitNow0: _exit(0);
	case Fault_QuickExit0: quick_exit(0);
	case Fault_ExitGroup0: syscall(SYS_exit_group, 0); break;
	case Fault_ExitThread0: in_thread(exit_0);
	case Fault_LeaveThread: syscall(SYS_exit, 0); break;
	case Fault_PthreadExit: pthread_exit(NULL);
	case Fault_KillGroup: kill_group(); break;
	case Fault_StopItself: /* which another thread may take first */
		kill(getpid(), SIGSTOP);
		for (;;) thread_sleep(1000);
	case Fault_LoopBlocked:
		block(0);
		while (deep) {
		}
		break;

	case Fault_BlockSignals: block(0); break;
	case Fault_IgnoreSignals: ignore_signals(); break;
	case Fault_DropSignalStack: without_stack(); break;
	case Fault_StopAndReturn: kill(getpid(), SIGSTOP); break;
	case Fault_JumpOutOfLogger: jump_out(m); break;
	case Fault_LimitAddressSpace: limit(RLIMIT_AS, 16 << 20); break;
	case Fault_LimitFiles: limit(RLIMIT_NOFILE, 0); break;
	case Fault_LimitFileSize: limit(RLIMIT_FSIZE, 0); break;
	case Fault_LimitProcesses: limit(RLIMIT_NPROC, 0); break;
	case Fault_UseUpFiles: use_up_files(); break;
	case Fault_HoldStream: hold_stream(); break;
	case Fault_CloseFiles: close_files(3, 1 << 20); break;
	case Fault_CloseOutput: close_files(0, 2); break;
	case Fault_ScribbleFiles: scribble_files(0); break;
	case Fault_TruncateFiles: scribble_files(1); break;
	case Fault_RemoveFolder: remove_folder(); break;
	case Fault_RemoveFile:
		if (m) unlink(m->s.text[1]);
		break;
	case Fault_Umask: umask(0777); break;
	case Fault_ProtectHeap: protect_heap(); break;
	case Fault_Undumpable:
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
		break;
	case Fault_TraceMe: ptrace(PTRACE_TRACEME, 0, NULL, NULL); break;
	case Fault_Seccomp: prctl(PR_SET_SECCOMP, 1, 0, 0, 0); break;
	case Fault_LeaveGroup: setpgid(0, getpgid(getppid())); break;
	case Fault_KillParent: kill_parent(); break;
	case Fault_ForkReturn: case Fault_ForkExec: case Fault_ForkCrash: case Fault_ForkSleep: case Fault_ForkDaemon: fork_off(m, fault); break;
	default: return 0;
	}
	return 1;
}

#endif
