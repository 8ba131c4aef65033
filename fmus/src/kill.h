/* kill: the faults that end or hang the process, on purpose. */
#ifndef KILL_H
#define KILL_H

#include "fmu.h"

#define SAY(m, status, category, ...)                                                             \
	(m)->callbacks.logger((m)->callbacks.componentEnvironment, (m)->name, status, category, __VA_ARGS__)

/* kill_process lets a fault from Fault_Segfault on happen. It comes back from
 * MemoryHog only, which takes so many MiB at most; 0: until it is refused. */
fmi2Status kill_process(Instance *m, int fault, int most);

/* kill_in_logger lets it happen while the master's logger runs: Segfault by a
 * string that cannot be read; EndlessLoop and EndlessSleep by messages without
 * end, the latter a thousand a second; all others in a thread of the FMU's own.
 * It comes back from MemoryHog, and from Segfault if the logger gets over it. */
fmi2Status kill_in_logger(Instance *m, int fault, int most);

#endif
