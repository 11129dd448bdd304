/* The capabilities of a store by name, for `stores` and `doctor`. */
#ifndef CLI_CAPABILITY_H
#define CLI_CAPABILITY_H

#include "json.h"

struct cli_capability {
    uint32_t bit;
    const char *name, *text;
};

/* The i-th of all, in the order of holdfast.h; NULL past the end. */
const struct cli_capability *cli_capability_at(size_t i);

/* {"shared":true,...} */
void cli_json_capabilities(struct cli_json *json, const char *key, uint32_t capabilities);

#endif
