/* kill: the faults that end or hang the process, on purpose. */
#ifndef KILL_H
#define KILL_H

#include "fmu.h"

#define SAY(m, status, category, ...)                                                             \
	(m)->callbacks.logger((m)->callbacks.componentEnvironment, (m)->name, status, category, __VA_ARGS__)

/* kill_process lets a fault from Fault_Segfault on happen. It comes back from those that
 * only damage the process, and from MemoryHog, which takes so many MiB at most; 0: until it
 * is refused. Without an instance, as while the library is loaded, nothing is logged. */
fmi2Status kill_process(Instance *m, int fault, int most);

/* kill_linux lets a fault happen that only Linux has. It gives 0 if it does not know it. */
int kill_linux(Instance *m, int fault);

/* kill_in_logger lets it happen while the master's logger runs: Segfault by a
 * string that cannot be read; EndlessLoop and EndlessSleep by messages without
 * end, the latter a thousand a second; all others in a thread of the FMU's own. */
fmi2Status kill_in_logger(Instance *m, int fault, int most);

#endif
