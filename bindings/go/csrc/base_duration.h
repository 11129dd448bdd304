/* Durations as people write them. */
#ifndef HF_BASE_DURATION_H
#define HF_BASE_DURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF__DURATION_MAX_MS (INT64_C(365) * 24 * 3600000) /* a year */

/* "250ms 30s 5m 2h 1d", or sums of these with the larger unit first ("1h30m"); a bare number is in
 * seconds, fractions are allowed; to milliseconds, rounded up. False if it is not a duration or
 * above a year. */
bool hf__parse_duration(const char *text, int64_t *ret_ms);

/* The shortest exact form: "1500ms", "30s", "2h". 24 bytes hold any. */
void hf__format_duration(int64_t ms, char *buf, size_t size);

#endif
