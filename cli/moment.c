/* See moment.h. */
#include "moment.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "cli.h"

#include "base/banned.h"

#define DAY_S 86400

/* All of the text by this format of strptime(). */
static bool reads(const char *text, const char *format, struct tm *tm)
{
    const char *end = strptime(text, format, tm);

    return end != NULL && *end == '\0';
}

static bool read_date(const char *text, struct tm *ret_tm)
{
    static const char *const formats[] = {"%Y-%m-%d",          "%Y-%m-%dT%H:%M",
                                          "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M",
                                          "%Y-%m-%d %H:%M:%S", NULL};

    for (size_t i = 0; formats[i] != NULL; i++) {
        *ret_tm = (struct tm){.tm_isdst = -1};
        if (reads(text, formats[i], ret_tm))
            return true;
    }
    return false;
}

/* Today, or yesterday if that is still to come. */
static bool read_clock(const char *text, bool utc, time_t now, time_t *ret_then)
{
    struct tm clock = {0}, tm;

    if (!reads(text, "%H:%M", &clock) && !reads(text, "%H:%M:%S", &clock))
        return false;
    for (int back = 0; back < 2; back++) {
        time_t day = now - back * DAY_S;
        if ((utc ? gmtime_r(&day, &tm) : localtime_r(&day, &tm)) == NULL)
            return false;
        tm.tm_hour = clock.tm_hour;
        tm.tm_min = clock.tm_min;
        tm.tm_sec = clock.tm_sec;
        tm.tm_isdst = -1;
        *ret_then = utc ? timegm(&tm) : mktime(&tm);
        if (*ret_then <= now)
            return true;
    }
    return true;
}

bool cli_parse_moment(const char *verb, const char *what, const char *text, int64_t *ret_ms)
{
    char plain[32] = "";
    size_t len = strlen(text);
    bool utc = len > 0 && text[len - 1] == 'Z';
    time_t now = time(NULL), then = -1;
    int64_t ago_ms;
    struct tm tm;

    if (len < sizeof plain)
        snprintf(plain, sizeof plain, "%.*s", (int)(len - utc), text);
    if (hf__parse_duration(text, &ago_ms) && ago_ms >= 0)
        *ret_ms = (int64_t)now * 1000 - ago_ms;
    else if (read_clock(plain, utc, now, &then))
        *ret_ms = (int64_t)then * 1000;
    else if (read_date(plain, &tm) && (then = utc ? timegm(&tm) : mktime(&tm)) >= 0)
        *ret_ms = (int64_t)then * 1000;
    else
        *ret_ms = -1;
    if (*ret_ms > 0)
        return true;
    cli_fail_usage(
        verb,
        "%s: '%s' is no moment: write 2h (ago), 03:12, 2026-11-15T03:12 (local time), or "
        "one of these with a Z (UTC)",
        what, text);
    return false;
}

void cli_format_utc(int64_t ms, char *buf, size_t size)
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    char day[32];

    if (gmtime_r(&s, &tm) == NULL || strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        snprintf(buf, size, "?");
    else
        snprintf(buf, size, "%s.%03dZ", day, (int)(ms % 1000));
}

void cli_format_wall(int64_t ms, char *buf, size_t size)
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    char day[32];

    if (localtime_r(&s, &tm) == NULL || tm.tm_gmtoff == 0 ||
        strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        cli_format_utc(ms, buf, size);
        return;
    }
    long offset = tm.tm_gmtoff < 0 ? -tm.tm_gmtoff : tm.tm_gmtoff;
    snprintf(buf, size, "%s.%03d%c%02ld:%02ld", day, (int)(ms % 1000), tm.tm_gmtoff < 0 ? '-' : '+',
             offset / 3600, offset / 60 % 60);
}
