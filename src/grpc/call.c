/* Calls, and the reader that is whoever waits (see conn.h). */
#include <errno.h>
#include <stdlib.h>

#include "base/thread.h"
#include "grpc/conn_state.h"

#include "base/banned.h"

#define PATIENT_MS 25 /* a read that waits in the kernel does so for less: see net/stream.c */

/* Who listens is not woken by what the server says to a call at once, such as that it has got it: the
 * thread that has sent it comes to read. */
struct hf__grpc_call *hf__grpc_begin(struct hf__grpc_conn *c,
                                     const struct hf__grpc_request *request, hf_error *err)
{
    struct hf__grpc_call *call = NULL;
    int64_t now_ns = hf__now_ns(c->env);
    bool failed = request->body->failed;

    pthread_mutex_lock(&c->mutex);
    if (c->session.waited_for == 0)
        c->asked_ns = now_ns;
    call = hf__grpc_session_call(&c->session, request);
    if (call != NULL) {
        call->sent_ns = now_ns;
        c->coming += !request->open;
        hf__grpc_arm(c);
        hf__grpc_send(c);
    } else if (c->broken) {
        hf__fail(err, c->why.code, "%s", c->why.text);
    } else if (c->session.going_away) {
        hf__fail(err, HF_UNAVAILABLE, "the server is going away");
    } else {
        hf__fail(err, HF_NO_MEMORY, failed ? "the request is too long, or out of memory" : NULL);
    }
    pthread_mutex_unlock(&c->mutex);
    return call;
}

/* From here on the mutex is held, unless said. ------------------------------------------------- */

/* Somebody else reads: sleeps until the answer is here, or the reader leaves, or the deadline. */
static void follow(struct hf__grpc_conn *c, struct hf__grpc_call *call, int64_t deadline_ns)
{
    call->to_waiter = &c->waiters;
    call->next_waiter = c->waiters;
    if (c->waiters != NULL)
        c->waiters->to_waiter = &call->next_waiter;
    c->waiters = call;
    hf__cond_wait(&call->wake, &c->mutex, c->env, deadline_ns);
    *call->to_waiter = call->next_waiter;
    if (call->next_waiter != NULL)
        call->next_waiter->to_waiter = call->to_waiter;
}

/* Reads for all until something has come. Without TLS the reader may wait in the kernel, which takes
 * one system call in place of three; with it, or if something waits to be sent, it polls. */
static void lead(struct hf__grpc_conn *c, int64_t deadline_ns)
{
    int64_t check_ns = hf__grpc_next_check(c);
    int64_t until_ns = deadline_ns < check_ns ? deadline_ns : check_ns;
    short events = 0;

    c->reading = true;
    hf__grpc_arm(c);
    if (c->plain && c->out_at == c->out.len &&
        until_ns - hf__now_ns(c->env) > PATIENT_MS * HF__NS_PER_MS) {
        pthread_mutex_unlock(&c->mutex);
        c->stream.patient = !c->stream.local;
        ssize_t n = c->stream.layer->read(&c->stream, c->chunk, sizeof c->chunk, &events);
        c->stream.patient = false;
        pthread_mutex_lock(&c->mutex);
        hf__grpc_take_in(c, n);
        if (n == -EAGAIN)
            hf__grpc_wait(c, events, until_ns);
    } else if (!hf__grpc_receive(c, &events)) {
        int r = hf__grpc_wait(c, events, until_ns);
        if (r != 0 && r != -ETIMEDOUT)
            hf__grpc_break_for(c, "receive", -r);
    }
    hf__grpc_check_life(c);
    c->reading = false;
}

/* There must be a reader while somebody waits, or who listens must know when there is something. */
static void hand_on(struct hf__grpc_conn *c)
{
    if (c->reading)
        return;
    if (c->waiters != NULL)
        pthread_cond_signal(&c->waiters->wake);
    else
        hf__grpc_arm(c);
    hf__grpc_ring(c);
}

/* A status is the server's word. Without one what counts is whether the kernel took the request's last
 * byte: the server looks at nothing that is not whole. */
static enum hf__grpc_end how_it_ended(struct hf__grpc_conn *c, const struct hf__grpc_call *call,
                                      hf_error *err)
{
    bool arrived = call->end != 0 && call->end <= c->sent && !call->refused;

    if (call->ended && call->http_status > 0 &&
        (call->status != HF__GRPC_STATUS_NONE || call->http_status != 200))
        return HF__GRPC_END_ANSWERED;
    if (c->broken)
        hf__fail(err, HF_UNAVAILABLE, "%s", c->why.text);
    else
        hf__fail(err, HF_UNAVAILABLE, "%s",
                 !call->ended      ? "no answer in time"
                 : call->in.failed ? "the answer is too long"
                                   : "the server reset the call");
    return !arrived      ? HF__GRPC_END_NOT_RECEIVED
           : call->ended ? HF__GRPC_END_CUT_OFF
                         : HF__GRPC_END_TOO_LATE;
}

enum hf__grpc_end hf__grpc_finish(struct hf__grpc_conn *c, struct hf__grpc_call *call,
                                  int64_t deadline_ns, hf_error *err)
{
    pthread_mutex_lock(&c->mutex);
    c->coming--;
    while (!call->ended && hf__now_ns(c->env) < deadline_ns) {
        if (c->reading)
            follow(c, call, deadline_ns);
        else
            lead(c, deadline_ns);
    }
    /* Nothing at all since it was sent: the next one had better go another way. */
    if (!call->ended && c->heard_ns < call->sent_ns && !hf__grpc_is_readable(c))
        hf__grpc_break_for(c, "receive", ETIMEDOUT);
    hand_on(c);
    enum hf__grpc_end end = how_it_ended(c, call, err);
    pthread_mutex_unlock(&c->mutex);
    return end;
}

void hf__grpc_release(struct hf__grpc_conn *c, struct hf__grpc_call *call)
{
    pthread_mutex_lock(&c->mutex);
    bool cancels = !call->ended;
    hf__grpc_session_release(call, false);
    if (cancels)
        hf__grpc_send(c);
    pthread_mutex_unlock(&c->mutex);
}

void hf__grpc_leave(struct hf__grpc_conn *c, struct hf__grpc_call *call)
{
    pthread_mutex_lock(&c->mutex);
    c->coming--;
    hf__grpc_session_release(call, true);
    hf__grpc_arm(c);
    pthread_mutex_unlock(&c->mutex);
}

void hf__grpc_settle(struct hf__grpc_conn *c, int64_t deadline_ns)
{
    pthread_mutex_lock(&c->mutex);
    while (!c->broken && c->session.waited_for > 0 && !c->reading &&
           hf__now_ns(c->env) < deadline_ns)
        lead(c, deadline_ns);
    hand_on(c);
    pthread_mutex_unlock(&c->mutex);
}
