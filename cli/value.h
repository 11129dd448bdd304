/* The values of options: from a word of the command line into the verb's variable. */
#ifndef CLI_VALUE_H
#define CLI_VALUE_H

#include "cli.h"

/* Sets option->value. `argument` is NULL for flags. False after a sentence. */
bool cli_set_value(const char *verb, const struct cli_option *option, char *argument);

#endif
