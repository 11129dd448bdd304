/* UTF-8, as strict as the databases that refuse a whole statement for one byte that is not text. */
#ifndef HF_BASE_UTF8_H
#define HF_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the character that the bytes begin with, and the character; 0 if it is none: cut
 * off, too long a form, half of a pair, or beyond Unicode. `len` is at least 1. */
size_t hf__utf8_decode(const char *bytes, size_t len, uint32_t *ret_char);

/* How many bytes are left without the beginning of a character that was cut off at the end. */
size_t hf__utf8_whole(const char *bytes, size_t len);

/* Whether all of it is UTF-8, without a NUL. */
bool hf__is_text(const char *bytes, size_t len);

/* False for what would move a terminal's cursor, hide, or turn the writing direction. */
bool hf__utf8_is_visible(uint32_t c);

#endif
