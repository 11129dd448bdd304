/* How a bid is ended, with proof: see session.h. The wait is cancelled and what is held is given up on
 * its own connection; where that does not answer, another one ends the session and looks until it
 * is gone. */
#include "sql/session/list.h"

#include <stdlib.h>

#include "base/banned.h"

#define GONE_YET_MS 5 /* how often to look whether the server has ended a session */

void hf__session_await(struct hf__session_list *list, struct hf__session_lock *lock,
                       int64_t until_ns)
{
    list->type->look(lock);
    while (lock->state == HF__SESSION_STATE_WAITING &&
           list->type->wait(list->owner, lock, until_ns))
        list->type->look(lock);
}

static void cancel_wait(struct hf__session_list *list, struct hf__session_lock *lock,
                        int64_t deadline_ns)
{
    struct hf__sql *sql = &list->owner->sql;
    struct hf__pooled *other = NULL;

    if (hf__pool_take(&sql->pool, deadline_ns, &other, NULL) != 0)
        return;
    if (list->type->cancel(list->owner, lock, other, deadline_ns))
        hf__session_await(list, lock, deadline_ns);
    sql->type->give_back(list->owner, other);
}

static bool end_session(struct hf__session_list *list, const struct hf__session_lock *lock,
                        int64_t deadline_ns)
{
    struct hf__sql *sql = &list->owner->sql;
    struct hf__pooled *other = NULL;
    enum hf__session_gone gone = HF__SESSION_GONE_NOT;

    if (hf__pool_take(&sql->pool, deadline_ns, &other, NULL) != 0)
        return false;
    while (gone == HF__SESSION_GONE_NOT && hf__now_ns(list->env) < deadline_ns) {
        gone = list->type->kill(list->owner, lock, other, deadline_ns);
        if (gone == HF__SESSION_GONE_NOT)
            hf__pool_sleep(&sql->pool, GONE_YET_MS);
    }
    sql->type->give_back(list->owner, other);
    return gone == HF__SESSION_GONE_YES;
}

/* `over`: it is freed. */
static void put_away(struct hf__session_list *list, struct hf__session_lock *lock, bool over)
{
    pthread_mutex_lock(&list->mutex);
    list->count -= !lock->leaving; /* its connection is lent to nobody else, or closed */
    lock->leaving = true;
    if (over)
        hf__session_remove(list, lock);
    hf__session_unclaim(list, lock);
    pthread_mutex_unlock(&list->mutex);
    if (over)
        free(lock);
}

bool hf__session_end(struct hf__session_list *list, struct hf__session_lock *lock,
                     int64_t deadline_ns)
{
    int64_t now_ns = hf__now_ns(list->env);

    if (lock->state == HF__SESSION_STATE_WAITING && list->type->fd(lock) >= 0)
        cancel_wait(list, lock, now_ns + (deadline_ns - now_ns) / 2);
    bool gone =
        list->type->leave(list->owner, lock, deadline_ns) || end_session(list, lock, deadline_ns);

    put_away(list, lock, gone);
    return gone;
}

void hf__session_abandon(struct hf__session_list *list, struct hf__session_lock *lock,
                         int64_t deadline_ns)
{
    if (!list->type->leave(list->owner, lock, deadline_ns))
        end_session(list, lock, deadline_ns);
    put_away(list, lock, true);
}
