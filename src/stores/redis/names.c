/* The keys of a lock's name.
 *
 * The key is made by key_format. Everything else that belongs to it is named after the key:
 *
 *      holdfast.b:{key}     in the same slot of a cluster as the key
 *      holdfast.b.key       if the key has a brace: its own {tag}, if any, then decides for both
 *
 * No two keys share a sibling: the letter is followed by ':' in one form and by '.' in the other. A
 * name whose key would be a sibling is refused; the default format makes none. */
#include <string.h>

#include "stores/redis/redis.h"

#include "base/banned.h"

#define KINDS "btqwilervnh"

static bool has_brace(const char *bytes, size_t len)
{
    return memchr(bytes, '{', len) != NULL || memchr(bytes, '}', len) != NULL;
}

static char *put(char *at, const char *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

int hf__redis_name(const struct hf__redis *s, const char *name, size_t len,
                   struct hf__redis_names *n, hf_error *err)
{
    size_t before = strlen(s->set.key_before), after = strlen(s->set.key_after);
    bool brace = has_brace(name, len) || has_brace(s->set.key_before, before) ||
                 has_brace(s->set.key_after, after);
    char *at = put(n->book, HF__REDIS_OWN_WORD "b", sizeof HF__REDIS_OWN_WORD);

    at = brace ? put(at, ".", 1) : put(at, ":{", 2);
    n->key = at;
    n->key_len = before + len + after;
    at = put(at, s->set.key_before, before);
    at = put(at, name, len);
    at = put(at, s->set.key_after, after);
    if (!brace)
        at = put(at, "}", 1);
    n->book_len = (size_t)(at - n->book);
    size_t word = sizeof HF__REDIS_OWN_WORD - 1;
    if (n->key_len >= word + 2 && memcmp(n->key, HF__REDIS_OWN_WORD, word) == 0 &&
        memchr(KINDS, n->key[word], sizeof KINDS - 1) != NULL &&
        (n->key[word + 1] == ':' || n->key[word + 1] == '.'))
        return hf__fail(err, HF_INVALID,
                        "with this key_format the name would be one of holdfast's own keys; choose "
                        "another name");
    return 0;
}

bool hf__redis_unname(const struct hf__redis *s, const char *book, size_t book_len,
                      struct hf__redis_names *n, const char **ret_name, size_t *ret_len)
{
    size_t before = strlen(s->set.key_before), after = strlen(s->set.key_after);
    size_t word = sizeof HF__REDIS_OWN_WORD, head = word;

    if (book_len >= sizeof n->book || book_len < word + 1)
        return false;
    memcpy(n->book, book, book_len);
    n->book[word - 1] = 'b'; /* or it is another key of that lock */
    n->book_len = book_len;
    head += book[word] == ':' ? 2 : 1;
    size_t tail = book[word] == ':' ? 1 : 0;
    if (book_len < head + tail + before + after + 1)
        return false;
    n->key = n->book + head;
    n->key_len = book_len - head - tail;
    *ret_name = n->key + before;
    *ret_len = n->key_len - before - after;
    return *ret_len <= HF_NAME_MAX && memcmp(n->key, s->set.key_before, before) == 0 &&
           memcmp(*ret_name + *ret_len, s->set.key_after, after) == 0;
}
