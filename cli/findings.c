/* See findings.h. */
#include "findings.h"

#include <string.h>

#include "capability.h"

#include "base/banned.h"

const char *cli_level_name(int level)
{
    static const char *const names[] = {"fine", "note", "warning", "problem"};

    return names[level < CLI_FINE || level > CLI_PROBLEM ? CLI_PROBLEM : level];
}

void cli_json_finding(struct cli_json *json, int level, const char *clause, const char *text)
{
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "level", cli_level_name(level));
    cli_json_text(json, "clause", clause);
    cli_json_text(json, "text", text);
    cli_json_close(json, '}');
}

/* "readers and writers (C9)" names its clause at the end. */
static void find_capability(const struct cli_capability *c, bool has, hf_finding_callback *found,
                            void *arg)
{
    const char *open = strrchr(c->text, '(');
    char text[128], clause[8] = "";
    int len = open != NULL ? (int)(open - c->text) - 1 : (int)strlen(c->text);

    snprintf(text, sizeof text, "%s: %.*s", has ? "it has" : "it has not", len, c->text);
    if (open != NULL)
        snprintf(clause, sizeof clause, "%.*s", (int)strcspn(open + 1, ")"), open + 1);
    found(has ? CLI_FINE : CLI_NOTE, clause[0] != '\0' ? clause : NULL, text, arg);
}

void cli_find_capabilities(uint32_t has, hf_finding_callback *found, void *arg)
{
    const struct cli_capability *c;

    for (size_t i = 0; (c = cli_capability_at(i)) != NULL; i++)
        find_capability(c, (has & c->bit) != 0, found, arg);
}

const char *cli_verdict(size_t problems, size_t warnings)
{
    if (problems > 0)
        return "do not rely on this store before the problems are fixed";
    return warnings > 0 ? "the store works; read the warnings first" : "the store works";
}
