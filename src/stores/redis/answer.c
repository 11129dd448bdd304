/* What the scripts answer: a word, and numbers behind it.
 *
 *      granted <generation> <lease> <claimed>
 *      queued <generation> <lease> <position> <ask again> <strangers>
 *      busy  withdrawn  full        to an attempt, besides the two above
 *      done  stale  deaf            to a release, a withdrawal, a break
 *      lost                         to a renewal, besides "granted" and "queued"
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
#define NUMBERS  5

static const struct word {
    const char *word;
    enum hf__verdict verdict;
    int to; /* which requests */
    size_t numbers;
} words[] = {
    {"granted", HF__VERDICT_GRANTED, ATTEMPTS | RENEWALS, 3},
    {"queued", HF__VERDICT_QUEUED, ATTEMPTS | RENEWALS, 5},
    {"busy", HF__VERDICT_BUSY, ATTEMPTS, 0},
    {"withdrawn", HF__VERDICT_WITHDRAWN, ATTEMPTS, 0},
    {"full", HF__VERDICT_FULL, ATTEMPTS, 0},
    {"done", HF__VERDICT_DONE, CHANGES, 0},
    {"stale", HF__VERDICT_STALE, CHANGES, 0},
    {"lost", HF__VERDICT_GONE, RENEWALS, 0},
};

static const struct word *find_word(const char *text, size_t len, int to)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (words[i].to & to && strlen(words[i].word) == len &&
            memcmp(words[i].word, text, len) == 0)
            return &words[i];
    }
    return NULL;
}

/* So many numbers and no more, of which negative ones (-1: never) become HF__NEVER. */
static bool read_numbers(const char *at, size_t count, int64_t *numbers)
{
    for (size_t i = 0; i < count; i++) {
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
    *a =
        (struct hf__answer){.verdict = HF__VERDICT_GRANTED,
                            .generation = (uint64_t)generation,
                            .lease_ms = bid->ttl_ms > 0 ? bid->ttl_ms : hf__provisional_lease_ms(0),
                            .claimed = bid->ttl_ms > 0,
                            .sent_ns = a->sent_ns};
    return true;
}

static bool read_answer(int to, const struct hf__bid *bid, const char *text, struct hf__answer *a,
                        enum hf__redis_strangers *ret_strangers)
{
    size_t len = strcspn(text, " ");
    const struct word *word = find_word(text, len, to);
    int64_t n[NUMBERS] = {0};

    if (word == NULL)
        return grant_as_bid(bid, text, a);
    if (!read_numbers(text + len, word->numbers, n))
        return false;
    struct hf__answer answer = {.verdict = word->verdict, .sent_ns = a->sent_ns};
    if (word->numbers > 0) {
        answer.generation = (uint64_t)n[0];
        answer.lease_ms = n[1];
    }
    if (word->verdict == HF__VERDICT_GRANTED) {
        answer.claimed = n[2] == 1;
        if (n[2] > 1)
            return false;
    }
    if (word->verdict == HF__VERDICT_QUEUED) {
        answer.position = (size_t)n[2];
        answer.ask_again_ms = n[3];
        if ((bid != NULL && !bid->queue) || n[2] == HF__NEVER || n[4] > HF__REDIS_LEFT_TO_THEM)
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
    int to = script == HF__REDIS_ATTEMPT ? ATTEMPTS
             : script == HF__REDIS_RENEW ? RENEWALS
                                         : CHANGES;

    if (script == HF__REDIS_BREAK && hf__redis_fits(reply, "s") && strcmp(reply->str, "deaf") == 0)
        return hf__fail(err, HF_UNSUPPORTED,
                        "another client holds it and cannot be asked to leave; break it now, or "
                        "wait until its time is over");
    if (!hf__redis_fits(reply, "s") ||
        !read_answer(to, script == HF__REDIS_ATTEMPT ? bid : NULL, reply->str, a, ret_strangers))
        return hf__fail(err, HF_CORRUPT, "a script gave an answer that was not expected");
    return 0;
}
