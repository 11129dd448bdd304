/* What the stores' `inspect` have in common. */
#ifndef HF_STORES_SEARCH_H
#define HF_STORES_SEARCH_H

#include "stores_store.h"

/* Whether this name is asked for. */
bool hf__search_wants(const struct hf__search *search, const char *name, size_t len);

/* The first byte string after all that begin with the prefix; its length, 0 if there is none. */
size_t hf__search_next_prefix(const struct hf__search *search, char next[HF_NAME_MAX]);

/* Leaves the entry as the doorman would that sweeps now. False: it would be over. */
bool hf__search_settle(struct hf__entry *e, int64_t now_ms);

/* Whether it is older than is asked for, if that is asked; since_ms is a span already. */
bool hf__search_is_old_enough(const struct hf__search *search, const struct hf__entry *e);

#endif
