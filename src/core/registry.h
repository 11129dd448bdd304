/* Which store serves a URL: those that are built in, and modules (modules.h).
 *
 * To add a store that needs a library of its own, add one line to the table in modules.c.
 *
 * The command includes this, and nothing else of the core: it lists stores that are not installed,
 * prints what setup would create without opening a store, and resolves the default URL before it
 * hands it down. None of that belongs into the API that programs link against. */
#ifndef HF_CORE_REGISTRY_H
#define HF_CORE_REGISTRY_H

#include "stores/store.h"

/* Opens the store that `url` names; NULL means hf__default_url(). `host` must outlive the store.
 * Fits as host->open_inner. The text of an error begins with the store's name.
 * Errors: HF_INVALID (the URL or an option in it), HF_NO_STORE (no such scheme, module missing),
 * HF_NO_MEMORY, and those of the store's open. */
int hf__store_open(const struct hf__host *host, const char *url, struct hf__store **ret_store,
                   hf_error *err);

/* The URL of the embedded default, to be freed: /var/lib/holdfast/locks.db for root, otherwise
 * holdfast/locks.db in the user's state directory. Makes the directories that are missing.
 * Errors: HF_NO_STORE (there is no home directory), HF_DENIED (a directory cannot be made),
 * HF_NO_MEMORY. */
int hf__embedded_url(char **ret_url, hf_error *err);

/* The one that is used when nobody names a store: that of the environment (handed_down.h), or the
 * embedded one. Errors: those of both. */
int hf__default_url(char **ret_url, hf_error *err);

/* What hf_setup() would create in the store that `url` names (NULL: the embedded one), as text for
 * a DBA, and that store's name; behind a wrapper, the store inside. The store is not opened. The
 * text is to be freed, and NULL if the store needs nothing. Errors: HF_INVALID, HF_NO_STORE,
 * HF_NO_MEMORY. */
int hf__setup_text(const char *url, const char **ret_store, char **ret_text, hf_error *err);

/* One store this installation may have; `type` is NULL if it cannot be used, and `missing` says
 * why. */
struct hf__known {
    const char *name; /* "sqlite" */
    const struct hf__store_type *type;
    bool wrapper; /* goes before another store's scheme: "trace+" */
    char missing[400];
};

/* The i-th store, loading its module. False past the end. */
bool hf__known_store(size_t i, struct hf__known *ret_known);

#endif
