/* How wide text is on a terminal. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/utf8.h"

/* Columns that printed text takes. */
size_t cli_width(const char *text);

/* How many bytes of it fit into so many columns; no character is cut. */
size_t cli_fit(const char *text, size_t columns);

#endif
