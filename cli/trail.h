/* What a trail tells, as `log` and the server write it. */
#ifndef CLI_TRAIL_H
#define CLI_TRAIL_H

#include "json.h"

/* An entry as an object. Its fields are a promise: see holdfast-log(1). */
void cli_json_trail_entry(struct cli_json *json, const hf_trail_entry *entry);

#endif
