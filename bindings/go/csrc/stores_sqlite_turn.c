/* Whose turn it is: among the threads of this process, then among processes.
 *
 * A thread that has to wait sleeps on a condition of its own, in a list for each rank; whoever
 * leaves passes the turn on to the first of them. So a turn is never taken by somebody who came
 * later, and nobody is woken in vain. Among processes the line of writers does the same. */
#include <time.h>

#include "base_thread.h"
#include "stores_sqlite_sqlite.h"

#include "base_banned.h"

struct hf__sqlite_waiter {
    pthread_cond_t called;
    bool has_turn;
    struct hf__sqlite_waiter *next;
};

void hf__sqlite_turn_init(struct hf__sqlite *s)
{
    pthread_mutex_init(&s->turn.mutex, NULL);
    for (int i = 0; i < HF__SQLITE_RANKS; i++)
        s->turn.last[i] = &s->turn.next[i];
}

void hf__sqlite_turn_clear(struct hf__sqlite *s)
{
    pthread_mutex_destroy(&s->turn.mutex);
}

static void remove_waiter(struct hf__sqlite *s, enum hf__sqlite_rank rank,
                          const struct hf__sqlite_waiter *me)
{
    struct hf__sqlite_waiter **at = &s->turn.next[rank];

    while (*at != me)
        at = &(*at)->next;
    *at = me->next;
    if (*at == NULL)
        s->turn.last[rank] = at;
}

/* Mutex held. */
static bool wait_for_turn(struct hf__sqlite *s, enum hf__sqlite_rank rank, int64_t deadline_ns)
{
    struct hf__sqlite_waiter me = {0};

    hf__cond_init(&me.called);
    *s->turn.last[rank] = &me;
    s->turn.last[rank] = &me.next;
    while (!me.has_turn &&
           hf__cond_wait(&me.called, &s->turn.mutex, s->base.host->env, deadline_ns))
        continue;
    if (!me.has_turn)
        remove_waiter(s, rank, &me);
    pthread_cond_destroy(&me.called);
    return me.has_turn;
}

int hf__sqlite_enter(struct hf__sqlite *s, enum hf__sqlite_rank rank, int64_t deadline_ns,
                     hf_error *err)
{
    bool mine = true;

    if (deadline_ns <= hf__now_ns(s->base.host->env))
        return hf__fail(err, HF_UNAVAILABLE, "sqlite: the time for this operation is over");
    pthread_mutex_lock(&s->turn.mutex);
    if (s->turn.taken)
        mine = wait_for_turn(s, rank, deadline_ns);
    else
        s->turn.taken = true;
    pthread_mutex_unlock(&s->turn.mutex);
    if (!mine)
        return hf__fail(err, HF_UNAVAILABLE,
                        "sqlite: other threads kept the database busy; try again");
    s->rank = rank;
    s->deadline_ns = deadline_ns;
    s->patience_ns = deadline_ns - hf__now_ns(s->base.host->env);
    hf__sqlite_process_enter();
    return 0;
}

void hf__sqlite_leave(struct hf__sqlite *s)
{
    struct hf__sqlite_waiter *next = NULL;

    hf__sqlite_process_leave();
    pthread_mutex_lock(&s->turn.mutex);
    for (int i = 0; i < HF__SQLITE_RANKS && next == NULL; i++) {
        next = s->turn.next[i];
        if (next != NULL)
            s->turn.next[i] = next->next;
        if (s->turn.next[i] == NULL)
            s->turn.last[i] = &s->turn.next[i];
    }
    if (next != NULL) {
        next->has_turn = true;
        pthread_cond_signal(&next->called);
    } else {
        s->turn.taken = false;
    }
    pthread_mutex_unlock(&s->turn.mutex);
}

/* Counted by what was slept, not by the host's clock alone, which a test may have stopped. */
bool hf__sqlite_wait(struct hf__sqlite *s)
{
    int64_t left_ns = s->deadline_ns - hf__now_ns(s->base.host->env);

    if (left_ns > s->patience_ns)
        left_ns = s->patience_ns;
    if (left_ns <= 0)
        return false;
    hf__sqlite_process_leave();
    s->patience_ns -= hf__writers_wait(&s->writers, s->rank == HF__SQLITE_RANK_KEEPS, left_ns);
    hf__sqlite_process_enter();
    return true;
}
