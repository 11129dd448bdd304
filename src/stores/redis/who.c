/* Who asks, as it is kept in a server: words with a NUL behind each, of which the note may lack it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/link.h"

#include "base/banned.h"

size_t hf__redis_put_self(const struct hf__who *self, char *to, size_t size)
{
    return (size_t)snprintf(to, size, "%lld%c%.127s%c%.63s%c%.127s%c", (long long)self->pid, 0,
                            self->host, 0, self->user, 0, self->program, 0);
}

const char *hf__redis_next_word(const char **at, const char *end)
{
    const char *word = *at;

    if (word >= end)
        return "";
    *at = word + strlen(word) + 1;
    return word;
}

void hf__redis_read_who(const char *at, const char *end, struct hf__who *who)
{
    who->pid = strtoll(hf__redis_next_word(&at, end), NULL, 10);
    who->host = hf__redis_next_word(&at, end);
    who->user = hf__redis_next_word(&at, end);
    who->program = hf__redis_next_word(&at, end);
    who->note = hf__redis_next_word(&at, end);
}
