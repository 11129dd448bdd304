/* Who asks, as text that any UTF-8 database takes. */
#ifndef HF_BASE_WHO_H
#define HF_BASE_WHO_H

#include <stdint.h>

#include "holdfast.h"

/* Who asks; kept with the bid and shown to people. All strings are set, possibly empty. */
struct hf__who {
    const char *host, *user, *program, *note;
    int64_t pid;
};

struct hf__who_text {
    char host[256], user[256], program[256], note[4 * HF_NOTE_MAX + 1];
    int64_t pid;
};

/* A backslash is doubled and a byte that is not UTF-8 written as \ooo; what is too long is cut. */
void hf__who_text_init(struct hf__who_text *who, const struct hf__who *from);

/* And back, in place. Gives back `text`. */
char *hf__who_plain(char *text);

#endif
