/* Durations: numbers with units, the larger unit first ("1h30m"). No signs, blanks or exponents, and
 * no unit twice or left out behind another: a lease that was misread is worse than one that was
 * refused. The arithmetic is exact, so that a fraction is never
 * rounded down to a shorter lease than was asked for. */
#include "base_duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base_banned.h"

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1},
};

#define UNIT_COUNT (sizeof units / sizeof units[0])

/* The unit at the beginning of the text; NULL: there is none. Nothing at all is seconds. */
static const struct unit *find_unit(const char *text)
{
    static const struct unit seconds = {"", 1000};
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz");

    if (text[0] == '\0')
        return &seconds;
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        if (strlen(units[i].name) == len && memcmp(units[i].name, text, len) == 0)
            return &units[i];
    }
    return NULL;
}

/* "0.digits" of a unit in milliseconds, rounded up: long multiplication from the last digit on,
 * where what falls off to the right of the point only matters if it is not zero. */
static int64_t fraction_ms(const char *digits, size_t len, int64_t unit_ms)
{
    int64_t carry = 0;
    bool rest = false;

    while (len-- > 0) {
        int64_t product = (digits[len] - '0') * unit_ms + carry;
        rest = rest || product % 10 != 0;
        carry = product / 10;
    }
    return carry + (rest ? 1 : 0);
}

/* One number and its unit; *text moves on behind it. False: it is none, or too long. */
static bool parse_part(const char **text, int64_t *ret_ms, const struct unit **ret_unit)
{
    static const char digits[] = "0123456789";
    const char *whole = *text;
    size_t whole_len = strspn(whole, digits), fraction_len = 0;
    const char *fraction = whole + whole_len;
    int64_t count = 0;

    if (*fraction == '.') {
        fraction++;
        fraction_len = strspn(fraction, digits);
        if (fraction_len == 0)
            return false;
    }
    const struct unit *unit = find_unit(fraction + fraction_len);
    if (whole_len == 0 || unit == NULL)
        return false;
    for (size_t i = 0; i < whole_len; i++) {
        count = count * 10 + (whole[i] - '0');
        if (count > HF__DURATION_MAX_MS / unit->ms)
            return false;
    }
    *ret_ms = count * unit->ms + fraction_ms(fraction, fraction_len, unit->ms);
    *ret_unit = unit;
    *text = fraction + fraction_len + strlen(unit->name);
    return true;
}

bool hf__parse_duration(const char *text, int64_t *ret_ms)
{
    const struct unit *unit, *last = NULL;
    int64_t sum_ms = 0, part_ms;

    do {
        if (!parse_part(&text, &part_ms, &unit) || (last != NULL && unit->ms >= last->ms))
            return false;
        /* "1h30": thirty of what? */
        if (unit->name[0] == '\0' && last != NULL)
            return false;
        sum_ms += part_ms;
        last = unit;
    } while (*text != '\0');
    if (sum_ms > HF__DURATION_MAX_MS)
        return false;
    *ret_ms = sum_ms;
    return true;
}

void hf__format_duration(int64_t ms, char *buf, size_t size)
{
    size_t i = 0;

    if (ms == 0) {
        snprintf(buf, size, "0s");
        return;
    }
    while (ms % units[i].ms != 0)
        i++;
    snprintf(buf, size, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
}
