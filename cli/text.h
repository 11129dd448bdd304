/* Which bytes may go to a terminal, and how wide they are there. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/utf8.h"

/* False for what would move the cursor, hide, or turn the writing direction. */
bool cli_is_visible(uint32_t c);

/* Columns that printed text takes. */
size_t cli_width(const char *text);

#endif
