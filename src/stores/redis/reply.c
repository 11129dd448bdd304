/* What a reply looks like, before anybody reads what it says.
 *
 * A server is not trusted to answer in the shape that was asked for: a proxy, an older server or a
 * hostile one may send anything that is RESP. So nobody looks inside a reply without having said
 * here what it must be made of; then every pointer and number that is read is there.
 *
 *      s  a text        n  a text or nil        i  a number        a  anything
 *      [...]  a list of exactly these, of which the last may be (...): any number of times */
#include <string.h>

#include "stores/redis/link.h"

#include "base/banned.h"

/* The place behind the item at `shape`. */
static const char *behind(const char *shape)
{
    int depth = 0;

    do {
        depth += *shape == '[' || *shape == '(';
        depth -= *shape == ']' || *shape == ')';
        shape++;
    } while (depth > 0);
    return shape;
}

bool hf__redis_fits(const redisReply *reply, const char *shape)
{
    size_t i = 0;

    switch (*shape) {
    case 's':
        return reply->type == REDIS_REPLY_STRING;
    case 'n':
        return reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_NIL;
    case 'i':
        return reply->type == REDIS_REPLY_INTEGER;
    case 'a':
        return true;
    }
    if (reply->type != REDIS_REPLY_ARRAY)
        return false;
    for (const char *at = shape + 1; *at != ']'; at = behind(at)) {
        bool many = *at == '(';
        const char *first = at + many, *end = behind(at) - many;
        while (!many || i < reply->elements) {
            for (const char *item = first; item < end; item = behind(item)) {
                if (i == reply->elements || !hf__redis_fits(reply->element[i++], item))
                    return false;
            }
            if (!many)
                break;
        }
    }
    return i == reply->elements;
}

bool hf__redis_read_page(const redisReply *reply, char *cursor, hf_error *err)
{
    const redisReply *next = hf__redis_fits(reply, "[s[(s)]]") ? reply->element[0] : NULL;
    size_t len = next != NULL ? (size_t)next->len : 0;

    /* A server goes on from page to page, and ends with 0; one that stays where it is would never. */
    bool over = len == 1 && next->str[0] == '0';
    if (len == 0 || len >= HF__REDIS_CURSOR_SIZE || strspn(next->str, "0123456789") != len ||
        (!over && strcmp(next->str, cursor) == 0)) {
        hf__fail(err, HF_CORRUPT, "SCAN gave an answer that was not expected");
        return false;
    }
    memcpy(cursor, next->str, len + 1);
    return true;
}

bool hf__redis_is_error(const redisReply *reply, const char *word)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, word, strlen(word)) == 0;
}

/* A whole number without a sign, of up to 16 digits; the place behind it, NULL: there is none. */
const char *hf__redis_read_number(const char *at, int64_t *ret_number)
{
    int64_t number = 0;
    size_t digits = 0;

    for (; at[digits] >= '0' && at[digits] <= '9' && digits < 17; digits++)
        number = 10 * number + (at[digits] - '0');
    *ret_number = number;
    return digits > 0 && digits < 17 ? at + digits : NULL;
}

bool hf__redis_read_time(const redisReply *reply, int64_t *ret_us)
{
    int64_t seconds, micros;

    if (!hf__redis_fits(reply, "[ss]"))
        return false;
    const char *s = hf__redis_read_number(reply->element[0]->str, &seconds);
    const char *us = hf__redis_read_number(reply->element[1]->str, &micros);
    if (s == NULL || *s != '\0' || us == NULL || *us != '\0' || micros > 999999 ||
        seconds > HF__REDIS_NUMBER_MAX / 1000000)
        return false;
    *ret_us = seconds * 1000000 + micros;
    return true;
}
