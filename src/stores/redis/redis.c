/* redis://, rediss://, redis+unix://, redis+sentinel:// - one Redis server, shared with whoever
 * locks by SET NX PX.
 *
 * Each operation is one call of a script (attempt.lua, ...), which Redis runs as one atomic step on
 * its own clock:
 *
 *      EVALSHA <sha1> 2 <key> <book> <ticket> ...
 *
 * The key is the plain record that other clients use as well, SET key ticket NX PX; the book and
 * its sets beside it are notes (notes.lua says what they hold). A request is never repeated
 * silently: if its reply is lost the connection is closed, and the core asks again by ticket. */
#include "stores/redis/redis.h"

#include "base/banned.h"

static struct hf__redis *redis_of(struct hf__store *store)
{
    return (struct hf__redis *)store;
}

static int run(struct hf__redis_conn *c, const struct hf__redis_operation *op, int64_t deadline_ns,
               struct hf__answer *ret_answer, enum hf__redis_strangers *ret_strangers,
               hf_error *err)
{
    redisReply *reply = NULL;
    int r = hf__redis_run(c, op->script, deadline_ns, &reply, err);

    if (r == 0)
        r = hf__redis_answer(op->script, op->bid, reply, ret_answer, ret_strangers, err);
    freeReplyObject(reply);
    return r;
}

/* Who is called asks by itself only now and then, in case a call was lost; who is not, asks as
 * often as the URL says. */
static void pace(struct hf__redis *s, bool listens, struct hf__answer *a)
{
    const struct hf_env *env = s->base.host->env;
    int64_t most_ms = !listens ? s->set.poll_ms : a->position <= 1 ? s->set.recheck_ms : HF__NEVER;
    uint32_t dice = 0;

    if (a->verdict != HF__VERDICT_QUEUED || a->ask_again_ms <= most_ms / 2)
        return;
    if (most_ms == HF__NEVER)
        return;
    env->random(env->ctx, &dice, sizeof dice);
    most_ms += dice % (most_ms / 2 + 1) - most_ms / 4; /* a quarter more or less */
    if (a->ask_again_ms > most_ms)
        a->ask_again_ms = most_ms;
}

/* The replicas must have the grant, or it is none. */
static int confirm(struct hf__redis *s, struct hf__redis_conn *c,
                   const struct hf__redis_operation *granted, int64_t deadline_ns, hf_error *err)
{
    struct hf__redis_operation undo = {
        .script = HF__REDIS_SCRIPT_WITHDRAW, .bid = granted->bid, .names = granted->names};
    struct hf__answer answer = {0};
    bool enough = false;
    int r = hf__redis_wait_replicas(s, c, deadline_ns, &enough, err);

    if (r == 0 && enough)
        return 0;
    if (r == 0) {
        /* On this connection, so that it cannot come before the grant; the key is part of the copy's own
         * buffer. */
        undo.names.key = undo.names.book + (granted->names.key - granted->names.book);
        hf__redis_add_change(s, c, &undo);
        r = run(c, &undo, deadline_ns, &answer, NULL, NULL);
        if (r == 0)
            return HF_UNAVAILABLE;
        r = hf__wrap(err, HF_UNKNOWN, "take it back");
    }
    hf__redis_bar(s, &granted->bid->ticket);
    return r;
}

static int attempt(struct hf__redis *s, const struct hf__bid *bid, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__redis_operation op = {.script = HF__REDIS_SCRIPT_ATTEMPT, .bid = bid};
    struct hf__redis_conn *c = NULL;
    enum hf__redis_strangers strangers = HF__REDIS_STRANGERS_NONE;
    bool changed = false;
    int r = hf__redis_name(s, bid->name, bid->name_len, &op.names, err);

    if (r != 0)
        return r;
    if (hf__redis_is_barred(s, &bid->ticket)) {
        ret_answer->verdict = HF__VERDICT_STALE;
        return 0;
    }
    /* Before the bid, which notes our channel: a bidder that is let in meanwhile is called there. */
    const char *channel = bid->queue || bid->tell ? hf__redis_listen_again(s, deadline_ns) : NULL;
    r = hf__redis_take(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    op.generation = hf__redis_clock_us(c, ret_answer->sent_ns);
    hf__redis_add_bid(s, c, &op, channel);
    r = run(c, &op, deadline_ns, ret_answer, &strangers, err);
    if (r == 0 && s->set.wait_replicas > 0 && ret_answer->verdict == HF__VERDICT_GRANTED)
        r = confirm(s, c, &op, deadline_ns, err);
    if (r == 0 && strangers != HF__REDIS_STRANGERS_NONE && ret_answer->position == 1)
        changed = hf__redis_watch_key(s, c, &op, strangers, deadline_ns);
    else if (r == 0)
        hf__redis_unwatch(s, &bid->ticket);
    hf__redis_give(s, c);
    if (r != 0)
        return r;
    pace(s, hf__listener_listens(&s->listener), ret_answer);
    if (changed) /* between the bid and the watch: nobody will tell us */
        ret_answer->ask_again_ms = 0;
    return 0;
}

static int change(struct hf__redis *s, const struct hf__operation *op, int64_t deadline_ns,
                  struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__redis_operation ask = {.bid = op->bid, .number = op->retire_ms};
    struct hf__redis_conn *c = NULL;

    ask.script =
        op->kind == HF__OPERATION_WITHDRAW ? HF__REDIS_SCRIPT_WITHDRAW : HF__REDIS_SCRIPT_RELEASE;
    if (op->kind == HF__OPERATION_BREAK) {
        ask.script = HF__REDIS_SCRIPT_BREAK;
        ask.number = op->now;
    } else if (op->kind == HF__OPERATION_RELEASE && (op->at_least_ms > 0 || op->generation > 0)) {
        ask.script = HF__REDIS_SCRIPT_RELEASE_AFTER; /* the short ways of a release know neither */
        ask.at_least_ms = op->at_least_ms;
        ask.generation = op->generation;
    }
    int r = hf__redis_name(s, op->bid->name, op->bid->name_len, &ask.names, err);
    if (r == 0)
        r = hf__redis_take(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    hf__redis_add_change(s, c, &ask);
    r = run(c, &ask, deadline_ns, ret_answer, NULL, err);
    hf__redis_give(s, c);
    hf__redis_unwatch(s, &op->bid->ticket);
    if (r == 0 && op->kind == HF__OPERATION_WITHDRAW)
        hf__redis_unbar(s, &op->bid->ticket);
    return r;
}

static int operate_once(struct hf__redis *s, const struct hf__operation *op, int64_t deadline_ns,
                        struct hf__answer *ret_answer, hf_error *err)
{
    if (op->kind == HF__OPERATION_ATTEMPT)
        return attempt(s, op->bid, deadline_ns, ret_answer, err);
    if (op->kind == HF__OPERATION_READ || op->kind == HF__OPERATION_WRITE)
        return hf__redis_value(s, op, deadline_ns, ret_answer, err);
    return change(s, op, deadline_ns, ret_answer, err);
}

/* A master that is none any more has done nothing: ask the one that is. Once only, so that two servers
 * that each name the other cost no more than the deadline. */
static bool is_worth_another(struct hf__redis *s, int r)
{
    return r == HF_UNAVAILABLE && atomic_exchange(&s->sentinels.demoted, false);
}

static int operate(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__redis *s = redis_of(store);
    int r = operate_once(s, op, deadline_ns, ret_answer, err);

    return is_worth_another(s, r) ? operate_once(s, op, deadline_ns, ret_answer, err) : r;
}

static int renew_once(struct hf__redis *s, struct hf__renewal *items, size_t count,
                      int64_t deadline_ns, hf_error *err)
{
    struct hf__redis_conn *c = NULL;
    struct hf__redis_names names;
    redisReply *reply = NULL;

    hf__redis_subscribe_failover(s, deadline_ns);
    int r = hf__redis_take(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    /* All keys come first, as EVALSHA has it; so each name is made, sent and forgotten, and no room is
     * needed for all of them. */
    hf__redis_script(c, HF__REDIS_SCRIPT_RENEW, 2 * count, 2 * count + 1);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = hf__redis_name(s, items[i].name, items[i].name_len, &names, err);
        if (r == 0)
            hf__redis_add_names(c, &names);
    }
    for (size_t i = 0; i < count; i++) {
        hf__redis_add_ticket(c, &items[i].ticket);
        hf__redis_add_number(c, items[i].generation);
    }
    hf__redis_add_settings(s, c, NULL);
    if (r != 0)
        c->broken = true; /* half a request is in its buffer */
    if (r == 0)
        r = hf__redis_run(c, HF__REDIS_SCRIPT_RENEW, deadline_ns, &reply, err);
    if (r == 0 && (!hf__redis_fits(reply, "[(s)]") || reply->elements != count))
        r = hf__fail(err, HF_CORRUPT, "renew: the server gave another number of answers");
    for (size_t i = 0; r == 0 && i < count; i++)
        r = hf__redis_answer(HF__REDIS_SCRIPT_RENEW, NULL, reply->element[i], &items[i].answer,
                             NULL, err);
    freeReplyObject(reply);
    hf__redis_give(s, c);
    return r;
}

static int renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                 int64_t deadline_ns, hf_error *err)
{
    struct hf__redis *s = redis_of(store);
    int r = renew_once(s, items, count, deadline_ns, err);

    return is_worth_another(s, r) ? renew_once(s, items, count, deadline_ns, err) : r;
}

static const char *const schemes[] = {"redis", "rediss", "redis+unix", "redis+sentinel", NULL};

const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "redis",
    .schemes = schemes,
    .summary = "one Redis server, on the keys that other lock clients use",
    .capabilities = HF_CAN_SHARE | HF_CAN_LIMIT | HF_CAN_LEASE | HF_CAN_NEVER | HF_CAN_DELAY |
                    HF_CAN_QUEUE | HF_CAN_PUSH | HF_CAN_TOKEN | HF_CAN_CHECK | HF_CAN_BREAK |
                    HF_CAN_DETACH | HF_CAN_PROCESS | HF_CAN_AT_LEAST | HF_CAN_VALUE |
                    HF_CAN_WANTED | HF_CAN_HISTORY | HF_CAN_CACHE,
    .options = hf__redis_options,
    .open = hf__redis_open,
    .close = hf__redis_close,
    .operate = operate,
    .renew = renew,
    .inspect = hf__redis_inspect,
    .upkeep = hf__redis_upkeep,
    .diagnose = hf__redis_diagnose,
    .wake_fd = hf__redis_wake_fd,
    .wake = hf__redis_wake,
    .trail = hf__redis_trail,
};
