/* What the scripts answer: a word, and numbers behind it.
 *
 *      granted <generation> <lease> <claimed> [1]     1: somebody waits, and it wants to hear that
 *      queued <generation> <lease> <position> <ask again> <strangers>
 *      busy [1]  withdrawn  full    to an attempt, besides the two above; 1: it is worth asking again soon
 *      done  stale  deaf            to a release, a withdrawal, a break
 *      lost                         to a renewal, besides "granted" and "queued"
 *      done  stale  lost            about a value
 *      <generation>                 to an attempt that was granted as it was bid, the short way
 *
 * Everything else is HF_CORRUPT: an answer that is only nearly right must not become a grant, nor a
 * reason to ask again for ever. */
#include <string.h>

#include "doorman/sound.h"
#include "stores/redis/redis.h"

#include "base/banned.h"

#define ATTEMPTS 1
#define CHANGES  2
#define RENEWALS 4
#define VALUES   8
#define NUMBERS  5

static const struct known_answer {
    const char *word;
    enum hf__verdict verdict;
    int to;               /* which requests */
    size_t numbers, more; /* and so many that may be missing */
} known_answers[] = {
    {"granted", HF__VERDICT_GRANTED, ATTEMPTS | RENEWALS, 3, 1},
    {"queued", HF__VERDICT_QUEUED, ATTEMPTS | RENEWALS, 5, 0},
    {"busy", HF__VERDICT_BUSY, ATTEMPTS, 0, 1},
    {"withdrawn", HF__VERDICT_WITHDRAWN, ATTEMPTS, 0, 0},
    {"full", HF__VERDICT_FULL, ATTEMPTS, 0, 0},
    {"done", HF__VERDICT_DONE, CHANGES | VALUES, 0, 0},
    {"stale", HF__VERDICT_STALE, CHANGES | VALUES, 0, 0},
    {"lost", HF__VERDICT_GONE, RENEWALS | VALUES, 0, 0},
};

/* The numbers of that word and no more, of which negative ones (-1: never) become HF__NEVER. */
static bool read_numbers(const char *at, const struct known_answer *word, int64_t *numbers)
{
    for (size_t i = 0; i < word->numbers + word->more; i++) {
        if (i >= word->numbers && *at == '\0')
            return true;
        if (*at++ != ' ')
            return false;
        bool negative = *at == '-';
        at = hf__redis_read_number(at + negative, &numbers[i]);
        if (at == NULL || numbers[i] > HF__REDIS_NUMBER_MAX)
            return false;
        if (negative)
            numbers[i] = HF__NEVER;
    }
    return *at == '\0';
}

/* The short way gives the generation only: the rest is as it was bid. */
static bool grant_as_bid(const struct hf__bid *bid, const char *digits, struct hf__answer *a)
{
    int64_t generation = 0;
    const char *end = hf__redis_read_number(digits, &generation);

    if (bid == NULL || end != digits + 16 || *end != '\0' || generation < 1 ||
        generation > HF__REDIS_NUMBER_MAX)
        return false;
    bool claimed = bid->ttl_ms != HF__NEVER;
    *a =
        (struct hf__answer){.verdict = HF__VERDICT_GRANTED,
                            .generation = (uint64_t)generation,
                            .lease_ms = claimed ? bid->ttl_ms : hf__provisional_lease_ms(HF__NEVER),
                            .claimed = claimed,
                            .sent_ns = a->sent_ns};
    return true;
}

/* `to` says what was asked: a word that answers something else is none. */
static bool read_answer(int to, const struct hf__bid *bid, const char *text, struct hf__answer *a,
                        enum hf__redis_strangers *ret_strangers)
{
    size_t len = strcspn(text, " ");
    const struct known_answer *word = known_answers,
                              *end = known_answers + sizeof known_answers / sizeof known_answers[0];
    int64_t n[NUMBERS] = {0};

    while (word < end &&
           (!(word->to & to) || strlen(word->word) != len || memcmp(word->word, text, len) != 0))
        word++;
    if (word == end)
        return grant_as_bid(bid, text, a);
    if (!read_numbers(text + len, word, n))
        return false;
    struct hf__answer answer = {.verdict = word->verdict, .sent_ns = a->sent_ns};
    if (word->numbers > 0) {
        answer.generation = (uint64_t)n[0];
        answer.lease_ms = n[1];
    }
    if (word->verdict == HF__VERDICT_GRANTED) {
        answer.claimed = n[2] == 1;
        answer.wanted = n[3] == 1;
        if (n[2] > 1 || n[3] > 1)
            return false;
    }
    if (word->verdict == HF__VERDICT_BUSY) {
        answer.wanted = n[0] == 1;
        if (n[0] > 1)
            return false;
    }
    if (word->verdict == HF__VERDICT_QUEUED) {
        answer.position = (size_t)n[2];
        answer.ask_again_ms = n[3];
        /* Who does not wait is not in the queue, and would wait for a call that never comes. */
        if ((bid != NULL && !bid->queue) || n[2] == HF__NEVER ||
            n[4] > HF__REDIS_STRANGERS_LEFT_TO_THEM)
            return false;
        if (ret_strangers != NULL)
            *ret_strangers = (enum hf__redis_strangers)n[4];
    }
    if (!hf__answer_is_sound(&answer))
        return false; /* a lease of nothing would be asked for again and again */
    *a = answer;
    return true;
}

int hf__redis_answer(enum hf__redis_script script, const struct hf__bid *bid,
                     const redisReply *reply, struct hf__answer *a,
                     enum hf__redis_strangers *ret_strangers, hf_error *err)
{
    int to = script == HF__REDIS_SCRIPT_ATTEMPT ? ATTEMPTS
             : script == HF__REDIS_SCRIPT_RENEW ? RENEWALS
             : script == HF__REDIS_SCRIPT_VALUE ? VALUES
                                                : CHANGES;

    if (script == HF__REDIS_SCRIPT_BREAK && hf__redis_fits(reply, "s") &&
        strcmp(reply->str, "deaf") == 0)
        return hf__fail(err, HF_UNSUPPORTED,
                        "another client holds it and cannot be asked to leave; break it now, or "
                        "wait until its time is over");
    if (!hf__redis_fits(reply, "s") ||
        !read_answer(to, script == HF__REDIS_SCRIPT_ATTEMPT ? bid : NULL, reply->str, a,
                     ret_strangers))
        return hf__fail(err, HF_CORRUPT, "a script gave an answer that was not expected");
    return 0;
}

static bool read_whole(const redisReply *text, int64_t most, int64_t *ret_number)
{
    const char *end = hf__redis_read_number(text->str, ret_number);

    return end != NULL && *end == '\0' && *ret_number <= most;
}

bool hf__redis_read_value(const redisReply *reply, struct hf__value *ret_value)
{
    int64_t generation, order, doubt;

    if (!hf__redis_fits(reply, "[sssss]"))
        return false;
    const redisReply *bytes = reply->element[4];
    if (!read_whole(reply->element[1], HF__REDIS_NUMBER_MAX, &generation) ||
        !read_whole(reply->element[2], HF__REDIS_NUMBER_MAX, &order) ||
        !read_whole(reply->element[3], 1, &doubt) || (size_t)bytes->len > sizeof ret_value->bytes)
        return false;
    ret_value->generation = (uint64_t)generation;
    ret_value->order = (uint64_t)order;
    ret_value->doubt = doubt == 1;
    ret_value->len = (size_t)bytes->len;
    memcpy(ret_value->bytes, bytes->str, ret_value->len);
    return true;
}
