/* redlock://h1,h2,h3,h4,h5 - independent Redis servers that vote, as the author of Redis specified
 * it. Each node is asked by one script (attempt.lua, ...):
 *
 *      EVALSHA <sha1> 2 <key> <note> <ticket> <ttl> ...      SET key ticket NX PX ttl
 *      EVALSHA <sha1> 2 <key> <note> <ticket> <retire>       compare and DEL, or keep it closed
 *
 * and the lock is held by whom a majority has let in, for ttl less what has passed since before the
 * first request was sent and less drift; the core counts that deadline (C3). There is no server
 * that could number the grants, hence no fencing token, no queue and nobody who calls: waiters ask
 * again after a random while. A bid that finds no majority takes back what it has got, everywhere
 * and at once, on the same connections, so that its own requests cannot arrive after that.
 *
 * Three things can arrive late at a node that was frozen or cut off, and each has its own remedy:
 *
 *   an attempt, after its lease has run out      the note outlives the key: a ticket is let in once
 *   an attempt, after its ticket was withdrawn   the withdrawal leaves a note that says "over"
 *   a clean-up, after the bid has asked again    it names the round that it takes back */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redlock/redlock.h"

#include "base/banned.h"

#define RETIRE_MS     60000 /* how long an attempt may stay on its way to a node */
#define NODE_TIME_MIN 50

/* A question about one lock. */
struct bidding {
    struct hf__redlock_ask ask;
    const struct hf__redlock *s;
    const struct hf__bid *bid;
    struct hf__redlock_key key;
    char ticket[HF_TICKET_SIZE], ttl[24], keep[24];
    uint64_t round; /* rises with each time that this ticket asks, in microseconds; 0: none */
    char note[96 + HF__REDLOCK_SELF_MAX + HF_NOTE_MAX];
    size_t note_len;
    int64_t retire_ms, at_least_ms;
    bool over;                   /* the ticket is not bid with again */
    uint32_t yes, no, withdrawn; /* votes, a bit for each node */
    uint32_t wanted;             /* clean-up: those that are waited for */
};

static struct hf__redlock *redlock_of(struct hf__store *store)
{
    return (struct hf__redlock *)store;
}

/* The keys and the ticket, with which all questions about one lock begin. */
static void write_keys(const struct bidding *b, struct hf__redis_conn *c)
{
    hf__redis_add(c, "2", 1);
    hf__redis_add(c, b->key.bytes, b->key.len);
    hf__redlock_add_note_name(c, b->ticket);
    hf__redis_add(c, b->ticket, HF_TICKET_SIZE - 1);
}

static void write_attempt(struct hf__redlock_ask *ask, size_t node, struct hf__redis_conn *c)
{
    const struct bidding *b = (const struct bidding *)ask;

    (void)node;
    write_keys(b, c);
    hf__redis_add_text(c, b->ttl);
    hf__redis_add_text(c, b->keep);
    hf__redis_add_number(c, b->round);
    hf__redis_add(c, b->note, b->note_len);
}

/* "ttl keep round pid\0host\0user\0program\0note", the same for all nodes. */
static void make_note(struct bidding *b)
{
    const struct hf__redlock *s = b->s;
    size_t words_len = strnlen(b->bid->who->note, HF_NOTE_MAX);

    snprintf(b->ttl, sizeof b->ttl, "%lld", (long long)b->bid->ttl_ms);
    snprintf(b->keep, sizeof b->keep, "%lld", (long long)(b->bid->ttl_ms + b->bid->retire_ms));
    b->round = (uint64_t)hf__now_ns(s->base.host->env) / 1000;
    size_t at = (size_t)snprintf(b->note, sizeof b->note, "%s %s %llu ", b->ttl, b->keep,
                                 (unsigned long long)b->round);
    memcpy(b->note + at, s->self, s->self_len);
    memcpy(b->note + at + s->self_len, b->bid->who->note, words_len);
    b->note_len = at + s->self_len + words_len;
}

/* A node to which an attempt may still be on its way is told to refuse it. Not while the ticket is
 * bid with again, as in a clean-up: the refusal would then meet the next attempt. */
static void write_release(struct hf__redlock_ask *ask, size_t node, struct hf__redis_conn *c)
{
    const struct bidding *b = (const struct bidding *)ask;
    struct hf__redlock *s = (struct hf__redlock *)b->s;
    int64_t retire_ms = b->retire_ms;

    pthread_mutex_lock(&s->mutex);
    bool adrift = hf__now_ns(s->base.host->env) < s->nodes[node].adrift_ns;
    pthread_mutex_unlock(&s->mutex);
    if (adrift && b->over && retire_ms < RETIRE_MS)
        retire_ms = RETIRE_MS;
    write_keys(b, c);
    hf__redis_add_number(c, retire_ms);
    hf__redis_add_number(c, b->round);
    if (b->at_least_ms > 0)
        hf__redis_add_number(c, (uint64_t)b->at_least_ms);
}

static int count_vote(struct hf__redlock_ask *ask, size_t node, redisReply **at, hf_error *err)
{
    struct bidding *b = (struct bidding *)ask;
    const redisReply *reply = *at;

    if (!hf__redis_fits(reply, "i") || reply->integer < -1 || reply->integer > 1)
        return hf__fail(err, HF_CORRUPT, "a script gave an answer that was not expected");
    if (reply->integer == 1)
        b->yes |= 1U << node;
    else if (reply->integer == 0)
        b->no |= 1U << node;
    else
        b->withdrawn |= 1U << node;
    return 0;
}

/* A majority for it, or so many against that none can come: what the others say would change
 * nothing, and a node that is slow must not cost the holder its lease. */
static bool is_decided(const struct hf__redlock_ask *ask)
{
    const struct bidding *b = (const struct bidding *)ask;
    size_t against = hf__redlock_votes(b->no | b->withdrawn);

    return hf__redlock_votes(b->yes) >= b->s->quorum || against > b->s->count - b->s->quorum;
}

static bool is_cleaned_up(const struct hf__redlock_ask *ask)
{
    return (((const struct bidding *)ask)->wanted & ~ask->replied) == 0;
}

static int begin(struct bidding *b, struct hf__redlock *s, const struct hf__bid *bid, hf_error *err)
{
    b->s = s;
    b->bid = bid;
    b->retire_ms = b->at_least_ms = 0;
    b->round = 0;
    b->over = false;
    b->yes = b->no = b->withdrawn = b->wanted = 0;
    hf__ticket_format(&bid->ticket, b->ticket);
    b->ask = (struct hf__redlock_ask){
        .reply = count_vote, .decided = is_decided, .to = hf__redlock_all(s)};
    return hf__redlock_key(s, bid->name, bid->name_len, &b->key, err);
}

/* Takes back what was or may have been given, on the very lines on which it was asked for. Nodes
 * that said yes are waited for: when the bid is refused, nothing of it is left there. */
static void clean_up(struct hf__redlock *s, struct hf__redlock_set *set, const struct bidding *from,
                     int64_t deadline_ns)
{
    struct bidding b = *from;

    b.ask = (struct hf__redlock_ask){.script = HF__REDLOCK_SCRIPT_RELEASE,
                                     .write = write_release,
                                     .argc = 6,
                                     .reply = count_vote,
                                     .decided = is_cleaned_up,
                                     .to = from->ask.sent & ~(from->no | from->withdrawn)};
    b.wanted = from->yes;
    if (b.ask.to != 0)
        hf__redlock_round(s, set, &b.ask, hf__redlock_soon(s, s->node_timeout_ms, deadline_ns));
}

/* When it is worth asking again: after a random while, so that rivals part; soon if it was not held
 * but the votes were split. */
static int64_t pause_ms(const struct hf__redlock *s, bool split)
{
    const struct hf_env *env = s->base.host->env;
    int64_t span_ms = split ? s->retry_ms / 4 + 1 : s->retry_ms;
    uint32_t dice = 0;

    env->random(env->ctx, &dice, sizeof dice);
    return (split ? 1 : span_ms / 2) + dice % (span_ms + 1);
}

/* What the votes mean. The whole ttl is given as the lease, because the core counts it from before
 * the first request was sent. One "withdrawn" is enough, even beside votes that are missing: that
 * node has seen this ticket before, and it is over. */
static int conclude(struct hf__redlock *s, const struct bidding *b, struct hf__answer *a,
                    hf_error *err)
{
    size_t answered = hf__redlock_votes(b->yes | b->no | b->withdrawn);

    if (hf__redlock_votes(b->yes) >= s->quorum) {
        a->verdict = HF__VERDICT_GRANTED;
        a->generation = HF__REDLOCK_GRANT;
        a->lease_ms = b->bid->ttl_ms;
        a->claimed = true;
        return 0;
    }
    if (b->withdrawn != 0) {
        a->verdict = HF__VERDICT_WITHDRAWN;
        return 0;
    }
    if (answered < s->quorum)
        return hf__redlock_too_few(s, &b->ask, answered, err);
    a->verdict = b->bid->queue ? HF__VERDICT_QUEUED : HF__VERDICT_BUSY;
    a->lease_ms = hf__provisional_lease_ms(b->bid->ttl_ms);
    a->ask_again_ms = pause_ms(s, b->yes != 0);
    return 0;
}

static int attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__redlock *s = redlock_of(store);
    struct hf__redlock_set *set = NULL;
    struct bidding b;

    /* The restart guard lets a server vote again after max_ttl: a longer lease could be
     * forgotten. */
    if (bid->ttl_ms > s->max_ttl_ms)
        return hf__fail(
            err, HF_INVALID,
            "the ttl is %lld ms but these servers are used with max_ttl=%lldms: ask for "
            "less, or raise max_ttl for all clients",
            (long long)bid->ttl_ms, (long long)s->max_ttl_ms);
    /* How long a node may take: far below the ttl, or there would be little left of it. */
    int64_t node_ms = bid->ttl_ms / 5 < NODE_TIME_MIN ? NODE_TIME_MIN : bid->ttl_ms / 5;
    if (node_ms > s->node_timeout_ms)
        node_ms = s->node_timeout_ms;
    int r = begin(&b, s, bid, err);
    if (r == 0)
        r = hf__redlock_take(s, deadline_ns, &set, err);
    if (r != 0)
        return r;
    make_note(&b);
    b.ask.script = HF__REDLOCK_SCRIPT_ATTEMPT;
    b.ask.write = write_attempt;
    b.ask.argc = 8;
    b.ask.voters_only = true;
    hf__redlock_round(s, set, &b.ask, hf__redlock_soon(s, node_ms, deadline_ns));
    if (hf__redlock_votes(b.yes) < s->quorum)
        clean_up(s, set, &b, deadline_ns);
    hf__redlock_give(s, set);
    return conclude(s, &b, ret_answer, err);
}

static int end(struct bidding *b, struct hf__redlock *s, int64_t retire_ms, int64_t deadline_ns,
               hf_error *err)
{
    struct hf__redlock_set *set = NULL;
    int r = hf__redlock_take(s, deadline_ns, &set, err);

    if (r != 0)
        return r;
    b->ask.script = HF__REDLOCK_SCRIPT_RELEASE;
    b->ask.write = write_release;
    b->ask.argc = b->at_least_ms > 0 ? 7 : 6;
    b->retire_ms = retire_ms;
    b->over = true;
    hf__redlock_round(s, set, &b->ask, hf__redlock_soon(s, s->node_timeout_ms, deadline_ns));
    hf__redlock_give(s, set);
    return 0;
}

/* What no majority has contradicted was ours: a node that lost the key, or never had it, says "no"
 * too. */
static enum hf__verdict count_votes(const struct hf__redlock *s, const struct bidding *b)
{
    return hf__redlock_votes(b->no) > s->count - s->quorum ? HF__VERDICT_STALE : HF__VERDICT_DONE;
}

/* RELEASE, or a WITHDRAW that must reach a majority. */
static int release(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__redlock *s = redlock_of(store);
    struct bidding b;
    int r = begin(&b, s, op->bid, err);

    b.at_least_ms = op->kind == HF__OPERATION_RELEASE ? op->at_least_ms : 0;
    if (r == 0)
        r = end(&b, s, op->retire_ms, deadline_ns, err);
    if (r != 0)
        return r;
    size_t answered = hf__redlock_votes(b.yes | b.no);
    if (answered < s->quorum) {
        hf__redlock_too_few(s, &b.ask, answered, err);
        return hf__wrap(err, HF_UNKNOWN, "release");
    }
    ret_answer->verdict = count_votes(s, &b);
    return 0;
}

/* An attempt that was answered has cleaned up behind itself, so this need not reach anybody; one
 * that was not must be refused by a majority, should it still come. */
static int withdraw(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                    struct hf__answer *ret_answer, hf_error *err)
{
    if (op->retire_ms > 0)
        return release(store, op, deadline_ns, ret_answer, err);

    struct hf__redlock *s = redlock_of(store);
    struct bidding b;
    int r = begin(&b, s, op->bid, err);
    if (r == 0)
        r = end(&b, s, 0, deadline_ns, err);
    ret_answer->verdict = r == 0 ? count_votes(s, &b) : HF__VERDICT_STALE;
    return r == HF_UNAVAILABLE ? 0 : r;
}

static int operate(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    switch (op->kind) {
    case HF__OPERATION_ATTEMPT:
        return attempt(store, op->bid, deadline_ns, ret_answer, err);
    case HF__OPERATION_RELEASE:
        return release(store, op, deadline_ns, ret_answer, err);
    case HF__OPERATION_WITHDRAW:
        return withdraw(store, op, deadline_ns, ret_answer, err);
    default:
        return hf__fail(err, HF_UNSUPPORTED, NULL);
    }
}

static const char *const schemes[] = {"redlock", NULL};

const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "redlock",
    .schemes = schemes,
    .summary = "several independent Redis servers that vote (no fencing token)",
    .capabilities = HF_CAN_LEASE | HF_CAN_DETACH | HF_CAN_PROCESS | HF_CAN_AT_LEAST,
    .options = hf__redlock_options,
    .open = hf__redlock_open,
    .close = hf__redlock_close,
    .operate = operate,
    .renew = hf__redlock_renew,
    .inspect = hf__redlock_inspect,
    .upkeep = hf__redlock_upkeep,
    .diagnose = hf__redlock_diagnose,
};
