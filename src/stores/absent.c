/* Stands in for the SQLite store until it is part of the tree. */
#include "stores/builtin.h"

static const char *const schemes[] = {"sqlite", NULL};
static const struct hf__option options[] = {{0}};

static int open_absent(const struct hf__url *url, const struct hf__host *host,
                       struct hf__store **ret_store, hf_error *err)
{
    (void)url, (void)host, (void)ret_store;
    return hf__fail(err, HF_NO_STORE, "this build has no SQLite");
}

const struct hf__store_type hf__sqlite_store_type = {
    .abi = HF__STORE_ABI, .name = "sqlite", .schemes = schemes, .summary = "", .options = options,
    .open = open_absent};
