/* Threads of the simulation: stacks, switching, and what belongs to one thread. For world.c and
 * wrap_threads.c. */
#ifndef TESTS_SIM_FIBER_H
#define TESTS_SIM_FIBER_H

#include "world.h"

#define FIBERS_MAX 192 /* at one time */

/* Runs the fiber until it leaves; only the scheduler does that. */
void fiber_enter(struct fiber *fiber);
void fiber_leave(void);

/* Of processes that run: those that can go on now, and when the next preempted one may. */
size_t fiber_list_ready(struct fiber *ready[FIBERS_MAX]);
int64_t fiber_next_start(void);

struct fiber *fiber_find(int number); /* NULL: there is none, or it was joined */
void fiber_free(struct fiber *fiber);
void fiber_drop_all(const struct process *process); /* their process is dead */
const char *fiber_describe_waiting(void);

#endif
