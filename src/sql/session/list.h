/* The inside of sql/session: the list, and how one of it is ended. Every function wants the mutex
 * held, unless it says otherwise. */
#ifndef HF_SQL_SESSION_LIST_H
#define HF_SQL_SESSION_LIST_H

#include "sql/session/session.h"

struct hf__session_lock *hf__session_find(struct hf__session_list *list,
                                          const struct hf__ticket *ticket);
void hf__session_add(struct hf__session_list *list, struct hf__session_lock *lock);
void hf__session_remove(struct hf__session_list *list, struct hf__session_lock *lock);

/* wake() hears from it, once; then it must be called again. */
void hf__session_hear(struct hf__session_list *list, struct hf__session_lock *lock);

/* wake() does not hear from it any more. To be called before `look` may close its connection. */
void hf__session_stop_hearing(struct hf__session_list *list, struct hf__session_lock *lock);

/* The bid, for the caller to work on without the mutex; NULL if there is none. False: somebody else
 * works on it, and the deadline has come. */
bool hf__session_claim(struct hf__session_list *list, const struct hf__ticket *ticket,
                       int64_t deadline_ns, struct hf__session_lock **ret_lock);

/* The other way round; from now on wake() hears from it. */
void hf__session_unclaim(struct hf__session_list *list, struct hf__session_lock *lock);

/* Ends what one that the caller has claimed holds or waits for, whatever its state. True: it is
 * proved that the server keeps nothing of it, and it is freed. False: it stays, and leaves; it may
 * be called again. Takes the mutex itself. */
bool hf__session_end(struct hf__session_list *list, struct hf__session_lock *lock,
                     int64_t deadline_ns);

/* The same for one whose connection is lost, which nobody asks about any more: it is freed, and the
 * session in the server, if there still is one, ended as a courtesy to those who wait. */
void hf__session_abandon(struct hf__session_list *list, struct hf__session_lock *lock,
                         int64_t deadline_ns);

/* Takes what has come until something has, or the time; without the mutex. */
void hf__session_await(struct hf__session_list *list, struct hf__session_lock *lock,
                       int64_t until_ns);

/* Tickets that were given up. HF_NO_MEMORY, or HF_FULL: no tombstone that is still needed is
 * dropped for a new one. */
bool hf__session_is_retired(const struct hf__session_list *list, const struct hf__ticket *ticket);
int hf__session_retire(struct hf__session_list *list, const struct hf__ticket *ticket,
                       int64_t retire_ms, hf_error *err);

#endif
