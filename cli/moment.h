/* Moments of the past, as people write and read them. */
#ifndef CLI_MOMENT_H
#define CLI_MOMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "2h" (ago), "03:12" or "03:12:30" (the last time it was so late), "2026-11-15", "2026-11-15T03:12" or with
 * seconds: in local time, or in UTC with a Z behind it. Milliseconds since 1970. False after a sentence that
 * begins with `what`. */
bool cli_parse_moment(const char *verb, const char *what, const char *text, int64_t *ret_ms);

/* "2026-11-15T03:12:30.123+01:00", in local time; with Z if that is UTC. 40 bytes hold any. */
void cli_format_wall(int64_t ms, char *buf, size_t size);

/* The same in UTC, for scripts. */
void cli_format_utc(int64_t ms, char *buf, size_t size);

#endif
