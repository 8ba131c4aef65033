/* thread: what FMUs that misbehave need of threads, on every system. */
#ifndef THREAD_H
#define THREAD_H

/* thread_start calls run(argument) in a thread of its own, which is never waited
 * for. It gives 0 if there can be none. */
int thread_start(void (*run)(void *), void *argument);

void thread_sleep(int milliseconds);

#endif
