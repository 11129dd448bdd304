/* Durations: one number, one unit. No sums ("1h30m"), signs, blanks or exponents: a lease that was
 * misread is worse than one that was refused. The arithmetic is exact, so that a fraction is never
 * rounded down to a shorter lease than was asked for. */
#include "util/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/banned.h"

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1},
};

#define UNIT_COUNT (sizeof units / sizeof units[0])

static bool find_unit(const char *name, int64_t *ret_ms)
{
    if (name[0] == '\0') {
        *ret_ms = 1000;
        return true;
    }
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        if (strcmp(units[i].name, name) == 0) {
            *ret_ms = units[i].ms;
            return true;
        }
    }
    return false;
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

bool hf__parse_duration(const char *text, int64_t *ret_ms)
{
    static const char digits[] = "0123456789";
    size_t whole_len = strspn(text, digits), fraction_len = 0;
    const char *fraction = text + whole_len;
    int64_t whole = 0, unit_ms;

    if (*fraction == '.') {
        fraction++;
        fraction_len = strspn(fraction, digits);
        if (fraction_len == 0)
            return false;
    }
    if (whole_len == 0 || !find_unit(fraction + fraction_len, &unit_ms))
        return false;
    for (size_t i = 0; i < whole_len; i++) {
        whole = whole * 10 + (text[i] - '0');
        if (whole > HF__DURATION_MAX_MS / unit_ms)
            return false;
    }

    int64_t ms = whole * unit_ms + fraction_ms(fraction, fraction_len, unit_ms);
    if (ms > HF__DURATION_MAX_MS)
        return false;
    *ret_ms = ms;
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
