/* Calls: a stream's number, and the reader that is whoever waits (see conn.h). */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "cql/conn_state.h"

#include "base/banned.h"

#define FOLLOW_MAX (INT64_C(3600000) * HF__NS_PER_MS)

static int take_stream(struct hf__cql_conn *c, struct hf__cql_call *call, hf_error *err)
{
    if (c->in_flight == HF__CQL_STREAMS)
        return hf__fail(err, HF_UNAVAILABLE, "%d requests are under way on one connection",
                        HF__CQL_STREAMS);
    while (c->calls[c->next_stream] != NULL)
        c->next_stream = (c->next_stream + 1) % HF__CQL_STREAMS;
    call->stream = (int16_t)c->next_stream;
    c->next_stream = (c->next_stream + 1) % HF__CQL_STREAMS;
    c->calls[call->stream] = call;
    c->in_flight++;
    return 0;
}

static void leave_stream(struct hf__cql_conn *c, struct hf__cql_call *call)
{
    c->calls[call->stream] = NULL;
    c->in_flight--;
}

static int why_broken(const struct hf__cql_conn *c, hf_error *err)
{
    return hf__fail(err, c->why.code, "%s", c->why.text);
}

/* Sends it. */
static int begin(struct hf__cql_conn *c, struct hf__cql_call *call, struct hf__cql_writer *request,
                 int64_t deadline_ns, hf_error *err)
{
    if (c->broken)
        return why_broken(c, err);
    int code = take_stream(c, call, err);
    if (code != 0)
        return code;
    hf__cql_set_stream(request, call->stream);
    code = hf__cql_conn_queue(c, request, err);
    if (code != 0) {
        leave_stream(c, call);
        return code;
    }
    call->end = c->queued;
    hf__cql_conn_send(c, deadline_ns);
    if (!c->broken || c->sent >= call->end || call->done)
        return 0;
    leave_stream(c, call);
    return why_broken(c, err);
}

/* Somebody else reads: sleeps until the answer is here, or the reader leaves, or the deadline. */
static void follow(struct hf__cql_conn *c, struct hf__cql_call *call, int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - hf__now_ns(c->env);
    struct timespec until;

    if (left_ns > FOLLOW_MAX)
        left_ns = FOLLOW_MAX;
    clock_gettime(CLOCK_MONOTONIC, &until);
    left_ns += until.tv_nsec;
    until.tv_sec += (time_t)(left_ns / 1000000000);
    until.tv_nsec = (long)(left_ns % 1000000000);

    call->to_waiter = &c->waiters;
    call->next_waiter = c->waiters;
    if (c->waiters != NULL)
        c->waiters->to_waiter = &call->next_waiter;
    c->waiters = call;
    pthread_cond_clockwait(&call->wake, &c->mutex, CLOCK_MONOTONIC, &until);
    *call->to_waiter = call->next_waiter;
    if (call->next_waiter != NULL)
        call->next_waiter->to_waiter = call->to_waiter;
}

/* Reads for all until something has come. */
static void lead(struct hf__cql_conn *c, int64_t deadline_ns)
{
    short events;

    c->reading = true;
    if (!hf__cql_conn_receive(c, &events)) {
        int r = hf__cql_conn_wait(c, events, deadline_ns);
        if (r != 0 && r != -ETIMEDOUT)
            hf__cql_conn_break_for(c, "receive", -r);
    }
    c->reading = false;
}

/* Waits for its answer. */
static int finish(struct hf__cql_conn *c, struct hf__cql_call *call, int64_t deadline_ns,
                  hf_error *err)
{
    while (!call->done && !c->broken && hf__now_ns(c->env) < deadline_ns) {
        if (c->reading)
            follow(c, call, deadline_ns);
        else
            lead(c, deadline_ns);
    }
    if (!c->reading && c->waiters != NULL) /* there must be a reader while somebody waits */
        pthread_cond_signal(&c->waiters->wake);
    if (call->done)
        return 0;
    call->may_have_arrived = !c->broken || call->end <= c->sent;
    if (c->broken) {
        leave_stream(c, call);
        return why_broken(c, err);
    }
    c->calls[call->stream] = &c->abandoned;
    if (++c->left_behind > HF__CQL_STREAMS / 2) /* it may never answer them: a new one has all */
        hf__cql_conn_break_for(c, "receive", ETIMEDOUT);
    return hf__fail(err, HF_UNAVAILABLE, "no answer in time");
}

int hf__cql_ask(struct hf__cql_conn *c, struct hf__cql_call *call, struct hf__cql_writer *request,
                int64_t deadline_ns, hf_error *err)
{
    *call = (struct hf__cql_call){.stream = -1};
    if (request->failed)
        return hf__fail(err, HF_NO_MEMORY, "the request is longer than %d bytes, or out of memory",
                        HF__CQL_REQUEST_MAX);
    pthread_cond_init(&call->wake, NULL);
    pthread_mutex_lock(&c->mutex);
    int code = begin(c, call, request, deadline_ns, err);
    if (code == 0)
        code = finish(c, call, deadline_ns, err);
    pthread_mutex_unlock(&c->mutex);
    pthread_cond_destroy(&call->wake);
    return code;
}
