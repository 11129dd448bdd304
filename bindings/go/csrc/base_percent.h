/* Percent-escapes, as in URLs: how a byte that is not plain is written. Which bytes are plain is
 * for the caller to say: a name on a terminal, in a URL and in a sequencer differ. */
#ifndef HF_BASE_PERCENT_H
#define HF_BASE_PERCENT_H

#include <stdbool.h>
#include <stddef.h>

/* Writes `byte` as it is, or as "%XX", without a NUL. Returns the characters written; 0 if `room`
 * does not suffice. */
size_t hf__percent_put(char *to, size_t room, char byte, bool plain);

/* The byte that "%XX" at the beginning of the text stands for; negative if there is no escape. */
int hf__percent_get(const char *text, size_t len);

#endif
