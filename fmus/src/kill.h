/* kill: the faults that end or hang the process, on purpose. */
#ifndef KILL_H
#define KILL_H

#include "fmu.h"

/* LOGGER calls the logger of the master. SAY lets it format the message in FMI 2.0. */
#if FMU_FMI == 3
#define LOGGER(f, environment, name, status, category, text)                                      \
	((void)(name), (f)->logger(environment, (fmi3Status)(status), category, text))
#define SAY(m, ...) say(m, __VA_ARGS__)
void say(const Instance *m, Status status, const char *category, const char *format, ...);
#else
#define LOGGER(f, environment, name, status, category, ...)                                       \
	(f)->logger(environment, name, (fmi2Status)(status), category, __VA_ARGS__)
#define SAY(m, status, category, ...)                                                             \
	LOGGER(&(m)->callbacks, (m)->callbacks.componentEnvironment, (m)->name, status, category, __VA_ARGS__)
#endif

/* kill_process lets a fault from Fault_Segfault on happen. It comes back from those that
 * only damage the process, and from MemoryHog, which takes so many MiB at most; 0: until it
 * is refused. Without an instance, as while the library is loaded, nothing is logged. */
Status kill_process(Instance *m, int fault, int most);

/* kill_linux lets a fault happen that only Linux has. It gives 0 if it does not know it. */
int kill_linux(Instance *m, int fault);

/* kill_in_logger lets it happen while the master's logger runs: Segfault by a
 * string that cannot be read; EndlessLoop and EndlessSleep by messages without
 * end, the latter a thousand a second; all others in a thread of the FMU's own. */
Status kill_in_logger(Instance *m, int fault, int most);

#endif
