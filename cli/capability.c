/* The list of capabilities of holdfast.h, as a table. */
#include "capability.h"

#include "base/banned.h"

static const struct cli_capability capabilities[] = {
#define X(id, bit, name, text) {id, name, text},
    HF_CAPABILITIES(X)
#undef X
};

const struct cli_capability *cli_capability_at(size_t i)
{
    return i < sizeof capabilities / sizeof capabilities[0] ? &capabilities[i] : NULL;
}

void cli_json_capabilities(struct cli_json *json, const char *key, uint32_t has)
{
    const struct cli_capability *c;

    cli_json_open(json, key, '{');
    for (size_t i = 0; (c = cli_capability_at(i)) != NULL; i++)
        cli_json_bool(json, c->name, (has & c->bit) != 0);
    cli_json_close(json, '}');
}
