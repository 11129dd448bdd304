/* The signals of `run`: noted by a handler, told to a poll loop through a descriptor.
 *
 * A handler and not signalfd(), because the library's threads need not share our mask, and because
 * a signal must also end a wait that sleeps inside the library. There is one set per process. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Called in the handler by every signal that would end the process; async-signal-safe. */
typedef void signals_ending(void *arg);

/* Starts to note INT TERM HUP QUIT USR1 USR2 CONT WINCH CHLD, and ignores PIPE, TTOU and XFSZ: a line on
 * stderr must never stop or kill a wrapper whose command it has to watch. What the caller had
 * ignored (nohup) stays ignored. Gives the descriptor to poll, or a negative errno. */
int signals_catch(signals_ending *ending, void *arg);

/* From now on TSTP is noted too, instead of stopping us: there is a command to pass it on to. */
void signals_catch_stop(void);

/* Ends nothing any more: later signals are only noted. */
void signals_forget_ending(void);

/* Takes the signals that have come, as a set, and clears the descriptor. What they tell of
 * (children that ended) is looked at after this, never before. */
void signals_take(sigset_t *ret_came);

/* The first ending signal that came and was not taken, 0 if none; it stays noted. */
int signals_first_ending(void);

/* Stops this process as if `sig` (TSTP, TTIN, TTOU) had its default effect. Returns when it is
 * continued: true; false if the system did not let it stop (an orphaned process group). */
bool signals_stop_self(int sig);

/* Blocks everything, for the time around vfork(); `ret_old` is the mask to put back. */
void signals_block_all(sigset_t *ret_old);

/* In the child before exec: every disposition and the mask as we inherited them. */
void signals_restore(void);

#endif
