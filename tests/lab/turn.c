/* What a thread of a worker does in one turn: bid, hold, write to the resource, give back. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lab/history.h"
#include "lab/worker.h"

struct turn {
    struct worker *worker;
    char who[64], key[96], name[160];
    enum kind kind;
    uint64_t random;
    unsigned count;
    int resource;
    hf_lock *lock;
    hf_cancel *cancel;
    uint64_t token;
    int64_t until_ns; /* what the lock was last said to last for */
    size_t position;  /* in line, as last told; 0: not in line yet */
};

static uint64_t draw(struct turn *t, uint64_t below)
{
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return below == 0 ? 0 : t->random % below;
}

static void rest(int64_t us)
{
    struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    nanosleep(&pause, NULL);
}

#define TELL(turn, event, ...) \
    history_add((turn)->worker->history, history_now_ns(), (turn)->who, event, __VA_ARGS__)

static void on_wait(size_t position, void *arg)
{
    struct turn *t = arg;

    /* Later it only grows if the place was lost, because the store has not heard of us for too long. */
    if (t->position == 0 || position > t->position)
        TELL(t, "queued", ",\"k\":\"%s\",\"n\":\"%s\",\"position\":%zu", t->key, t->name, position);
    t->position = position;
}

static void on_at_risk(hf_lock *lock, hf_cause cause, void *arg)
{
    struct turn *t = arg;

    (void)lock, (void)cause;
    TELL(t, "risk", ",\"k\":\"%s\",\"n\":\"%s\"", t->key, t->name);
}

static void tell_lost(struct turn *t, const char *by, hf_cause cause)
{
    TELL(t, "lost", ",\"k\":\"%s\",\"n\":\"%s\",\"by\":\"%s\",\"cause\":%d", t->key, t->name, by,
         (int)cause);
}

static void on_lost(hf_lock *lock, hf_cause cause, void *arg)
{
    (void)lock;
    tell_lost(arg, "callback", cause);
}

static int64_t until(const struct turn *t)
{
    int64_t left = hf_lock_remaining_ms(t->lock), now = history_now_ns();

    return left > HF_TTL_MAX_MS ? INT64_MAX : now + left * 1000000;
}

static bool is_shared(const struct turn *t)
{
    return t->kind == KIND_SHARED || t->kind == KIND_LIMITED;
}

static void tell_held(struct turn *t, const char *event)
{
    if (hf_lock_generation(t->lock, &t->token) != HF_OK)
        t->token = 0;
    t->until_ns = until(t);
    TELL(t, event, ",\"k\":\"%s\",\"n\":\"%s\",\"token\":%llu,\"ticket\":\"%s\",\"until\":%lld",
         t->key, t->name, (unsigned long long)t->token, hf_lock_ticket(t->lock),
         (long long)t->until_ns);
}

static void *fire_later(void *arg)
{
    struct turn *t = arg;

    rest((int64_t)(t->random % 100000));
    hf_cancel_fire(t->cancel);
    return NULL;
}

static int bid(struct turn *t, hf_error *err)
{
    static const char *const lock_of[KINDS] = {[KIND_LIMITED] = "seats", [KIND_NEVER] = "forever"};
    struct worker *w = t->worker;
    bool timed = t->kind == KIND_TIMED, never = t->kind == KIND_NEVER;
    pthread_t firing;
    hf_options opt = {.size = sizeof opt,
                      .mode = is_shared(t) ? HF_SHARED : HF_EXCLUSIVE,
                      .limit = t->kind == KIND_LIMITED ? 2 : 0,
                      .ttl_ms = never ? HF_NEVER : w->ttl_ms,
                      .wait_ms = timed ? (int64_t)draw(t, 200) : w->wait_ms,
                      .lock_delay_ms = never ? 0 : w->delay_ms,
                      .reentrant = t->kind == KIND_REENTRANT,
                      .note = t->key,
                      .cancel = w->stop,
                      .on_at_risk = on_at_risk,
                      .on_lost = on_lost,
                      .on_wait = on_wait,
                      .arg = t};

    const char *name = lock_of[t->kind] != NULL ? lock_of[t->kind] : "a";
    snprintf(t->name, sizeof t->name, "%s_%s", w->prefix, name);
    t->position = 0;
    bool cancelled = t->kind == KIND_CANCELLED && hf_cancel_new(&t->cancel) == HF_OK;
    if (cancelled) {
        opt.cancel = t->cancel;
        opt.wait_ms = 1000; /* SIGTERM does not end it */
        draw(t, 0);
        if (pthread_create(&firing, NULL, fire_later, t) != 0)
            return HF_SYSTEM;
    }
    TELL(t, "bid",
         ",\"k\":\"%s\",\"n\":\"%s\",\"m\":\"%s\",\"limit\":%u,\"ttl\":%lld,\"delay\":%lld,"
         "\"wait\":%lld",
         t->key, t->name, opt.mode == HF_SHARED ? "s" : "x", opt.limit, (long long)opt.ttl_ms,
         (long long)opt.lock_delay_ms, (long long)opt.wait_ms);
    int r = hf_acquire(w->client, t->name, HF_NTS, &opt, &t->lock, err);
    if (r == HF_OK)
        tell_held(t, "held");
    if (cancelled) {
        pthread_join(firing, NULL);
        hf_cancel_free(t->cancel);
    }
    return r;
}

/* A write that shows the token. What is done between the look at the lock and the write is what a
 * lease cannot protect: a process that is stopped here comes too late. */
static void write_to_resource(struct turn *t)
{
    char text[HF_SEQUENCER_MAX + 512], sequencer[HF_SEQUENCER_MAX] = "-", answer[16];

    if (t->kind == KIND_LIMITED)
        return; /* the gate knows no order among them */
    if (t->token != 0 && hf_lock_sequencer(t->lock, sequencer, sizeof sequencer) != HF_OK)
        return;
    int n = snprintf(text, sizeof text, "%s %s %s %s %llu %s", t->who, t->key, t->name,
                     is_shared(t) ? "s" : "x", (unsigned long long)t->token, sequencer);
    rest(2000);
    if (send(t->resource, text, (size_t)n, MSG_NOSIGNAL) != n ||
        recv(t->resource, answer, sizeof answer, 0) <= 0)
        rest(1000);
}

/* The child can do nothing with what it has inherited; now and then it outlives its parent's turn. */
static void fork_inside(struct turn *t)
{
    bool lives = draw(t, 2) == 0;
    pid_t child = fork();

    if (child != 0)
        return;
    int state = hf_lock_state(t->lock), released = hf_lock_release(t->lock, NULL);
    TELL(t, "forked", ",\"k\":\"%s\",\"state\":%d,\"release\":%d", t->key, state, released);
    if (lives)
        rest(t->worker->ttl_ms * 1500);
    _exit(0);
}

/* False: let go of, and not got again. */
static bool pass_on(struct turn *t)
{
    hf_options opt = {.size = sizeof opt, .on_lost = on_lost, .on_at_risk = on_at_risk, .arg = t};
    char ticket[HF_TICKET_SIZE];
    hf_error err = {0};

    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(t->lock));
    TELL(t, "detach", ",\"k\":\"%s\",\"n\":\"%s\"", t->key, t->name);
    int r = hf_lock_detach(t->lock, &err);
    if (r != HF_OK) {
        TELL(t, "kept", ",\"k\":\"%s\",\"n\":\"%s\",\"code\":\"%s\"", t->key, t->name,
             hf_code_name(r));
        return true;
    }
    r = hf_adopt(t->worker->client, t->name, HF_NTS, ticket, &opt, &t->lock, &err);
    if (r == HF_OK) {
        tell_held(t, "adopted");
        return true;
    }
    TELL(t, "left", ",\"k\":\"%s\",\"n\":\"%s\",\"code\":\"%s\"", t->key, t->name, hf_code_name(r));
    return false;
}

/* What the lock says of itself; tells what is new. False: lost. */
static bool look(struct turn *t)
{
    if (hf_lock_state(t->lock) == HF_STATE_LOST) {
        tell_lost(t, "state", hf_lock_cause(t->lock));
        return false;
    }
    int64_t now_until = until(t);
    if (now_until != INT64_MAX && now_until > t->until_ns + 30000000) {
        t->until_ns = now_until;
        TELL(t, "renewed", ",\"k\":\"%s\",\"n\":\"%s\",\"until\":%lld", t->key, t->name,
             (long long)now_until);
    }
    return true;
}

static void hold(struct turn *t)
{
    const struct worker *w = t->worker;
    int64_t span =
        (int64_t)draw(t, (uint64_t)(w->hold_max_ms - w->hold_min_ms + 1)) + w->hold_min_ms;

    if (w->long_percent > draw(t, 100))
        span = w->ttl_ms / 2 + (int64_t)draw(t, (uint64_t)w->ttl_ms * 3 / 2);
    if (t->kind == KIND_FORKING)
        fork_inside(t);
    for (int64_t end = history_now_ns() + span * 1000000; history_now_ns() < end && look(t);) {
        write_to_resource(t);
        rest(3000);
    }
    if (hf_lock_state(t->lock) != HF_STATE_LOST)
        return;
    rest(1000);
    if (hf_lock_state(t->lock) != HF_STATE_LOST)
        TELL(t, "unlost", ",\"k\":\"%s\",\"n\":\"%s\"", t->key, t->name);
}

static void give_back(struct turn *t)
{
    hf_error err = {0};

    if (t->kind == KIND_REENTRANT) {
        hf_options opt = {.size = sizeof opt, .reentrant = 1};
        hf_lock *again;
        int r = hf_acquire(t->worker->client, t->name, HF_NTS, &opt, &again, &err);
        TELL(t, "reentered", ",\"k\":\"%s\",\"n\":\"%s\",\"code\":\"%s\",\"same\":%d", t->key,
             t->name, hf_code_name(r), r == HF_OK && again == t->lock);
        if (r == HF_OK)
            hf_lock_release(again, NULL);
    }
    TELL(t, "release", ",\"k\":\"%s\",\"n\":\"%s\"", t->key, t->name);
    int r = hf_lock_release(t->lock, &err);
    TELL(t, "released", ",\"k\":\"%s\",\"n\":\"%s\",\"code\":\"%s\"", t->key, t->name,
         hf_code_name(r));
}

static void take_turn(struct turn *t)
{
    hf_error err = {0};

    do
        t->kind = (enum kind)draw(t, KINDS);
    while ((t->worker->kinds & 1U << t->kind) == 0);
    snprintf(t->key, sizeof t->key, "%s_%u", t->who, ++t->count);
    int r = bid(t, &err);
    if (r != HF_OK) {
        TELL(t, "fail", ",\"k\":\"%s\",\"n\":\"%s\",\"code\":\"%s\",\"may_hold\":%lld", t->key,
             t->name, hf_code_name(r), (long long)err.may_hold_ms);
        rest(r == HF_TIMEOUT || r == HF_BUSY || r == HF_CANCELLED ? 2000 : 50000);
        return;
    }
    hold(t);
    if (t->kind != KIND_ADOPTED || pass_on(t))
        give_back(t);
}

void worker_run(struct worker *w, unsigned number)
{
    struct turn t = {.worker = w,
                     .random = (w->seed + 1) * 0x9e3779b97f4a7c15U + number * 0x1234567U};
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    snprintf(t.who, sizeof t.who, "%s_%u", w->id, number);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", w->resource);
    t.resource = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(t.resource, (struct sockaddr *)&at, sizeof at) < 0)
        return perror(w->resource);
    while (!atomic_load(&w->stopping) && (w->turns == 0 || t.count < w->turns)) {
        take_turn(&t);
        rest(w->pause_ms * 1000);
    }
    close(t.resource);
}
