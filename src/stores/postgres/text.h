/* Who asks, as text that any UTF-8 database takes. */
#ifndef HF_STORES_POSTGRES_TEXT_H
#define HF_STORES_POSTGRES_TEXT_H

#include "stores/store.h"

struct hf__pg_who {
    char host[256], user[256], program[256], note[4 * HF_NOTE_MAX + 1];
    int64_t pid;
};

/* A backslash is doubled and a byte that is not UTF-8 written as \ooo; what is too long is cut. */
void hf__pg_who_init(struct hf__pg_who *who, const struct hf__who *from);

/* Whether these bytes are UTF-8 without a NUL. */
bool hf__pg_is_text(const char *bytes, size_t len);

/* And back, in place. Gives back `text`. */
char *hf__pg_plain(char *text);

#endif
