/* Which bytes may go to a terminal, and how wide they are there. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes one UTF-8 character: its length in bytes, or 0 if the bytes are not UTF-8 (overlong forms
 * and surrogates are not). */
size_t cli_decode(const char *bytes, size_t len, uint32_t *ret_char);

/* False for what would move the cursor, hide, or turn the writing direction. */
bool cli_is_visible(uint32_t c);

/* Columns that printed text takes. */
size_t cli_width(const char *text);

#endif
