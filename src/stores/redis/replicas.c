/* wait_replicas=N: a grant counts when so many replicas have it.
 *
 *      WAIT <N> <ms>
 *
 * on the connection that made the grant, after it: its number of replicas then have all that this
 * connection wrote. If they are too few the grant is taken back, on the same connection. This makes
 * a failover lose fewer locks; it does not make it lose none.
 *
 * What is not answered may still arrive: a WAIT elsewhere would not be about this grant, and what
 * takes it back would take the next one of the same ticket. So such a ticket is not bid with again. */
#include <stdlib.h>

#include "stores/redis/redis.h"

#include "base/banned.h"

int hf__redis_wait_replicas(struct hf__redis *s, struct hf__redis_conn *c, int64_t deadline_ns,
                            bool *ret_enough, hf_error *err)
{
    int64_t left_ms = (deadline_ns - hf__now_ns(s->base.host->env)) / HF__NS_PER_MS / 2;
    int64_t most_ms = left_ms < s->set.replica_timeout_ms ? left_ms : s->set.replica_timeout_ms;
    redisReply *reply = NULL;

    hf__redis_begin(c, 3);
    hf__redis_add(c, "WAIT", 4);
    hf__redis_add_number(c, s->set.wait_replicas);
    hf__redis_add_number(c, most_ms < 1 ? 1 : most_ms); /* 0 would be for ever */
    int r = hf__redis_send(c, deadline_ns, err);
    if (r == 0)
        r = hf__redis_receive(c, deadline_ns, &reply, err);
    if (r != 0)
        return hf__wrap(err, HF_UNKNOWN, "WAIT"); /* the grant was made */
    int64_t count = hf__redis_fits(reply, "i") ? reply->integer : -1;
    *ret_enough = count >= s->set.wait_replicas;
    if (count < 0 && hf__redis_error(reply, err) == 0)
        hf__fail(err, HF_CORRUPT, "WAIT gave an answer that was not expected");
    else if (count >= 0 && !*ret_enough)
        hf__fail(err, HF_UNAVAILABLE, "%lld of %lld replicas have confirmed the grant in time",
                 (long long)count, (long long)s->set.wait_replicas);
    freeReplyObject(reply);
    return 0;
}

struct hf__redis_barred {
    struct hf__redis_barred *next;
    struct hf__ticket ticket;
};

void hf__redis_bar(struct hf__redis *s, const struct hf__ticket *ticket)
{
    struct hf__redis_barred *barred = malloc(sizeof *barred);

    if (barred == NULL)
        return; /* then it is as likely as the network is bad */
    barred->ticket = *ticket;
    pthread_mutex_lock(&s->listener.mutex);
    barred->next = s->barred;
    s->barred = barred;
    pthread_mutex_unlock(&s->listener.mutex);
}

/* Mutex held. */
static struct hf__redis_barred **find(struct hf__redis *s, const struct hf__ticket *ticket)
{
    struct hf__redis_barred **at = &s->barred;

    while (*at != NULL && !hf__ticket_equal(&(*at)->ticket, ticket))
        at = &(*at)->next;
    return at;
}

bool hf__redis_is_barred(struct hf__redis *s, const struct hf__ticket *ticket)
{
    if (s->set.wait_replicas == 0)
        return false;
    pthread_mutex_lock(&s->listener.mutex);
    bool is_barred = *find(s, ticket) != NULL;
    pthread_mutex_unlock(&s->listener.mutex);
    return is_barred;
}

void hf__redis_unbar(struct hf__redis *s, const struct hf__ticket *ticket)
{
    if (s->set.wait_replicas == 0)
        return;
    pthread_mutex_lock(&s->listener.mutex);
    struct hf__redis_barred **at = find(s, ticket), *barred = *at;
    if (barred != NULL)
        *at = barred->next;
    pthread_mutex_unlock(&s->listener.mutex);
    free(barred);
}

void hf__redis_unbar_all(struct hf__redis *s)
{
    while (s->barred != NULL)
        hf__redis_unbar(s, &s->barred->ticket);
}
