/* What `lock`, `unlock` and `renew` share: a lock that outlives the command. */
#ifndef CLI_ADOPTED_LOCK_H
#define CLI_ADOPTED_LOCK_H

#include "cli.h"

/* Opens the store and takes the lock over by its ticket, without a keeper. 0, or an exit status
 * after a sentence. */
int cli_adopt(const struct cli *cli, const char *name, const char *ticket, hf_client **ret_client,
              hf_lock **ret_lock);

/* Prints sequencer, ticket and until when; with -q the ticket alone. Gives what cli_finish()
 * does. */
int cli_print_grant(const struct cli *cli, const hf_lock *lock);

#endif
