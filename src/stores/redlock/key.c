/* The key of a lock, which others know too, and the note of a ticket, which is ours. */
#include <string.h>

#include "stores/redlock/redlock.h"

#include "base/banned.h"

int hf__redlock_key(const struct hf__redlock *s, const char *name, size_t len,
                    struct hf__redlock_key *key, hf_error *err)
{
    size_t before = strlen(s->set.key_before), after = strlen(s->set.key_after);
    size_t word = sizeof HF__REDLOCK_OWN_WORD - 1;

    memcpy(key->bytes, s->set.key_before, before);
    memcpy(key->bytes + before, name, len);
    memcpy(key->bytes + before + len, s->set.key_after, after);
    key->len = before + len + after;
    if (key->len >= word && memcmp(key->bytes, HF__REDLOCK_OWN_WORD, word) == 0)
        return hf__fail(err, HF_INVALID,
                        "with this key_format the name would be one of holdfast's own keys; choose "
                        "another name");
    return 0;
}

void hf__redlock_add_note_name(struct hf__redis_conn *c, const char *ticket)
{
    char name[sizeof HF__REDLOCK_NOTE + HF_TICKET_SIZE] = HF__REDLOCK_NOTE;

    memcpy(name + sizeof HF__REDLOCK_NOTE - 1, ticket, HF_TICKET_SIZE);
    hf__redis_add(c, name, sizeof HF__REDLOCK_NOTE - 1 + HF_TICKET_SIZE - 1);
}
