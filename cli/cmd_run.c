#include "cli.h"
const struct cli_verb cli_verb_run = {.name = "run", .operands = "", .summary = ""};
