/* What an operation says to its script: for a bid its terms, for the others the ticket. */
#include <string.h>

#include "doorman/trail.h"
#include "stores/redis/redis.h"

#include "base/banned.h"

static char *put_field(char *at, int64_t number, char behind)
{
    at = hf__redis_put_number(at, (uint64_t)number);
    *at++ = behind;
    return at;
}

static char *put_bytes(char *at, const char *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

/* The terms of a bid, "gen letter ttl delay retire mode limit queue yield"; behind a NUL who bids,
 * "channel\0pid\0host\0user\0program\0note", the channel is '-' if nobody listens, and has behind
 * it a 'w' if the holder wants to hear that somebody waits, and a 'k' if its client may keep it; and the ticket again: so it is what the book of a
 * quiet lock says (notes.lua). */
static void add_terms(struct hf__redis *s, struct hf__redis_conn *c,
                      const struct hf__redis_operation *op, const char *channel)
{
    const struct hf__bid *bid = op->bid;
    char terms[HF__REDIS_WHO_MAX + 256], *at = terms;

    if (op->generation > 0)
        at = hf__redis_put_number(at, op->generation);
    /* A lock that only the rules may end: the short way of a release knows nothing of these. */
    *at++ = bid->lock_delay_ms > 0 || bid->ttl_ms == HF__NEVER || s->set.signal != 0 ? 'd' : 'H';
    at = put_field(at, hf__ttl_stored(bid->ttl_ms), ' ');
    at = put_field(at, bid->lock_delay_ms, ' ');
    at = put_field(at, bid->retire_ms, ' ');
    at = put_bytes(at, bid->mode == HF_SHARED ? "S " : "X ", 2);
    at = put_field(at, bid->limit, ' ');
    at = put_field(at, bid->queue, ' ');
    at = put_field(at, s->set.yield, ':');
    at = put_field(at, s->set.yield > 0 ? s->set.yield_for_ms : 0, '\0');
    at = channel != NULL ? put_bytes(at, channel, HF_TICKET_SIZE - 1) : put_bytes(at, "-", 1);
    if (bid->tell)
        *at++ = 'w';
    if (bid->cached)
        *at++ = 'k';
    *at++ = '\0';
    at = put_bytes(at, s->self, s->self_len);
    at = put_bytes(at, bid->who->note, strnlen(bid->who->note, HF_NOTE_MAX));
    hf__ticket_format(&bid->ticket, at);
    hf__redis_add(c, terms, (size_t)(at - terms) + HF_TICKET_SIZE - 1);
}

#define LIST_BEFORE "lock-signal:"
#define CHANNEL_END "-channel"

/* python-redis-lock has the list lock-signal:NAME beside the key lock:NAME; Spring's registry R has the
 * channel R-channel for all of its keys R:NAME. Many locks in one request (names NULL) are renewed,
 * which frees none. */
void hf__redis_add_settings(const struct hf__redis *s, struct hf__redis_conn *c,
                            const struct hf__redis_names *names)
{
    char word[2 * HF__REDIS_DIGITS + 1 + sizeof LIST_BEFORE + HF__REDIS_KEY_MAX], *at = word;
    size_t before = strlen(s->set.key_before);

    at = hf__redis_put_number(at, (uint64_t)s->set.retain_ms);
    if (s->set.history > 0) {
        *at++ = '~';
        at = hf__redis_put_number(at, (uint64_t)s->set.history);
    }
    if (s->set.signal != 0) {
        *at++ = ' ';
        *at++ = s->set.signal;
    }
    if (s->set.signal == 'L' && names != NULL) {
        at = put_bytes(at, LIST_BEFORE, sizeof LIST_BEFORE - 1);
        at = put_bytes(at, names->key + before, names->key_len - before);
    } else if (s->set.signal == 'P') {
        at = put_bytes(at, s->set.key_before, before - 1);
        at = put_bytes(at, CHANNEL_END, sizeof CHANNEL_END - 1);
    }
    hf__redis_add(c, word, (size_t)(at - word));
}

/* Only an exclusive bid can be quick, and only if it brings a generation along, and strangers are not
 * told. */
void hf__redis_add_bid(struct hf__redis *s, struct hf__redis_conn *c,
                       const struct hf__redis_operation *op, const char *channel)
{
    const struct hf__bid *bid = op->bid;
    bool never = bid->ttl_ms == HF__NEVER; /* it has to be claimed first */
    int64_t lease_ms = never ? hf__provisional_lease_ms(HF__NEVER) : bid->ttl_ms;
    int64_t delay_ms = never ? 0 : bid->lock_delay_ms;

    hf__redis_script(c, op->script, 2, s->set.history > 0 ? 5 : 4);
    hf__redis_add_names(c, &op->names);
    hf__redis_add_ticket(c, &bid->ticket);
    if (bid->mode == HF_EXCLUSIVE && op->generation > 0 && s->set.signal == 0)
        hf__redis_add_number(c, (uint64_t)(lease_ms + delay_ms));
    else
        hf__redis_add(c, "", 0);
    add_terms(s, c, op, channel);
    if (s->set.history > 0) /* the quick way counts with it */
        hf__redis_add_number(c, (uint64_t)s->set.retain_ms);
    hf__redis_add_settings(s, c, &op->names);
}

/* "ticket", "ticket number" or "ticket number at_least used", in one word: each costs the server as much as a
 * small command. */
void hf__redis_add_change(struct hf__redis *s, struct hf__redis_conn *c,
                          const struct hf__redis_operation *op)
{
    char word[HF_TICKET_SIZE + 3 * HF__REDIS_DIGITS + 3], *end = word + HF_TICKET_SIZE - 1;
    bool long_way = op->script == HF__REDIS_SCRIPT_RELEASE_AFTER;

    hf__ticket_format(&op->bid->ticket, word);
    if (op->number != 0 || long_way) {
        *end++ = ' ';
        end = hf__redis_put_number(end, (uint64_t)op->number);
    }
    if (long_way) {
        *end++ = ' ';
        end = hf__redis_put_number(end, (uint64_t)op->at_least_ms);
        *end++ = ' ';
        end = hf__redis_put_number(end, op->generation);
    }
    bool breaks = op->script == HF__REDIS_SCRIPT_BREAK;
    bool tells = s->set.history > 0 && (breaks || op->script == HF__REDIS_SCRIPT_RELEASE);
    hf__redis_script(c, op->script, 2, tells ? 3 : 2);
    hf__redis_add_names(c, &op->names);
    hf__redis_add(c, word, (size_t)(end - word));
    hf__redis_add_settings(s, c, &op->names);
    if (tells && breaks) {
        char breaker[HF__TRAIL_CAUSE_MAX];
        hf__trail_breaker(s->base.host->self, breaker);
        hf__redis_add_text(c, breaker);
    } else if (tells) {
        hf__redis_add_number(c, (uint64_t)s->set.history);
    }
}
