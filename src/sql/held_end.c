/* How a bid is ended, with proof: see hold.h. The wait is cancelled and what is held is given up on
 * its own connection; where that does not answer, another one ends the session and looks until it
 * is gone. */
#include "sql/held.h"

#include <stdlib.h>

#include "base/banned.h"

#define GONE_YET_MS 5 /* how often to look whether the server has ended a session */

void hf__held_await(struct hf__hold *hold, struct hf__held *h, int64_t until_ns)
{
    hold->type->look(h);
    while (h->state == HF__HELD_WAITING && hold->type->wait(hold->owner, h, until_ns))
        hold->type->look(h);
}

static void cancel_wait(struct hf__hold *hold, struct hf__held *h, int64_t deadline_ns)
{
    struct hf__sql *sql = &hold->owner->sql;
    struct hf__pooled *other = NULL;

    if (hf__pool_take(&sql->pool, deadline_ns, &other, NULL) != 0)
        return;
    if (hold->type->cancel(hold->owner, h, other, deadline_ns))
        hf__held_await(hold, h, deadline_ns);
    sql->type->give_back(hold->owner, other);
}

static bool end_session(struct hf__hold *hold, const struct hf__held *h, int64_t deadline_ns)
{
    struct hf__sql *sql = &hold->owner->sql;
    struct hf__pooled *other = NULL;
    enum hf__held_gone gone = HF__HELD_STILL_THERE;

    if (hf__pool_take(&sql->pool, deadline_ns, &other, NULL) != 0)
        return false;
    while (gone == HF__HELD_STILL_THERE && hf__now_ns(hold->env) < deadline_ns) {
        gone = hold->type->kill(hold->owner, h, other, deadline_ns);
        if (gone == HF__HELD_STILL_THERE)
            hf__pool_sleep(&sql->pool, GONE_YET_MS);
    }
    sql->type->give_back(hold->owner, other);
    return gone == HF__HELD_GONE;
}

/* `over`: it is freed. */
static void put_away(struct hf__hold *hold, struct hf__held *h, bool over)
{
    pthread_mutex_lock(&hold->mutex);
    hold->count -= !h->leaving; /* its connection is lent to nobody else, or closed */
    h->leaving = true;
    if (over)
        hf__held_take_out(hold, h);
    hf__held_unclaim(hold, h);
    pthread_mutex_unlock(&hold->mutex);
    if (over)
        free(h);
}

bool hf__held_end(struct hf__hold *hold, struct hf__held *h, int64_t deadline_ns)
{
    int64_t now_ns = hf__now_ns(hold->env);

    if (h->state == HF__HELD_WAITING && hold->type->fd(h) >= 0)
        cancel_wait(hold, h, now_ns + (deadline_ns - now_ns) / 2);
    bool gone = hold->type->leave(hold->owner, h, deadline_ns) || end_session(hold, h, deadline_ns);

    put_away(hold, h, gone);
    return gone;
}

void hf__held_abandon(struct hf__hold *hold, struct hf__held *h, int64_t deadline_ns)
{
    if (!hold->type->leave(hold->owner, h, deadline_ns))
        end_session(hold, h, deadline_ns);
    put_away(hold, h, true);
}
