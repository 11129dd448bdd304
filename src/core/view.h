/* Views: what one look at the store has found. A view does not change once it is made, so that several
 * may own it: it is counted. */
#ifndef HF_CORE_VIEW_H
#define HF_CORE_VIEW_H

#include <stdbool.h>

#include "base/error.h"

/* Checks a query and resolves HF_NTS; the texts stay the caller's. `given` may be NULL. HF_INVALID,
 * HF_UNSUPPORTED. */
int hf__copy_query(const hf_query *given, hf_query *ret, hf_error *err);

/* Asks the store. `query` comes from hf__copy_query(). Between hf__enter() and hf__leave(), mutex not
 * held. */
int hf__view_make(hf_client *client, const hf_query *query, hf_view **ret_view, hf_error *err);

hf_view *hf__view_ref(hf_view *view); /* one more owner; each calls hf_view_free() */

/* Whether the same tickets stand at the same places with the same grants. What passes by itself, ages
 * and leases, does not count. */
bool hf__views_are_alike(const hf_view *a, const hf_view *b);

#endif
