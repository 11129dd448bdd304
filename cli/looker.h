/* Looks at a store on a thread of its own, so that whoever shows what it finds can be talked to while
 * the store does not answer. */
#ifndef CLI_LOOKER_H
#define CLI_LOOKER_H

#include <pthread.h>
#include <stdbool.h>

#include "holdfast.h"

struct looker {
    hf_client *client;
    const hf_query *query; /* the caller's, and what it points to */
    int ask_fd, found_fd;
    bool busy;
    hf_view *view; /* what was found, when it is not busy any more; NULL: see `err` */
    hf_error err;
    int64_t took_ms;
};

/* False after a sentence. It is for the life of the process: nothing ends it. */
bool looker_start(struct looker *looker, hf_client *client, const hf_query *query);

/* Looks once. It must not be busy, and the view of the last time is the caller's to free. */
void looker_ask(struct looker *looker);

/* Whether the look is over: once for each. looker->found_fd is readable then. */
bool looker_has_found(struct looker *looker);

#endif
