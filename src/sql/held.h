/* The inside of sql/hold: the list, and how one of it is ended. Every function wants the mutex
 * held, unless it says otherwise. */
#ifndef HF_SQL_HELD_H
#define HF_SQL_HELD_H

#include "sql/hold.h"

struct hf__held *hf__held_find(struct hf__hold *hold, const struct hf__ticket *ticket);
void hf__held_put_in(struct hf__hold *hold, struct hf__held *h);
void hf__held_take_out(struct hf__hold *hold, struct hf__held *h);

/* wake() hears from it, once; then it must be called again. */
void hf__held_hear(struct hf__hold *hold, struct hf__held *h);

/* wake() does not hear from it any more. To be called before `look` may close its connection. */
void hf__held_stop_hearing(struct hf__hold *hold, struct hf__held *h);

/* The bid, for the caller to work on without the mutex; NULL if there is none. False: somebody else
 * works on it, and the deadline has come. */
bool hf__held_claim(struct hf__hold *hold, const struct hf__ticket *ticket, int64_t deadline_ns,
                    struct hf__held **ret_held);

/* The other way round; from now on wake() hears from it. */
void hf__held_unclaim(struct hf__hold *hold, struct hf__held *h);

/* Ends what one that the caller has claimed holds or waits for, whatever its state. True: it is
 * proved that the server keeps nothing of it, and it is freed. False: it stays, and leaves; it may
 * be called again. Takes the mutex itself. */
bool hf__held_end(struct hf__hold *hold, struct hf__held *h, int64_t deadline_ns);

/* The same for one whose connection is lost, which nobody asks about any more: it is freed, and the
 * session in the server, if there still is one, ended as a courtesy to those who wait. */
void hf__held_abandon(struct hf__hold *hold, struct hf__held *h, int64_t deadline_ns);

/* Takes what has come until something has, or the time; without the mutex. */
void hf__held_await(struct hf__hold *hold, struct hf__held *h, int64_t until_ns);

/* Tickets that were given up. HF_NO_MEMORY, or HF_FULL: no tombstone that is still needed is
 * dropped for a new one. */
bool hf__held_is_retired(const struct hf__hold *hold, const struct hf__ticket *ticket);
int hf__held_retire(struct hf__hold *hold, const struct hf__ticket *ticket, int64_t retire_ms,
                    hf_error *err);

#endif
