/* What this installation is and knows, as text for people. */
#include <stdio.h>
#include <stdlib.h>

#include "core_client.h"
#include "core_registry.h"

#include "base_banned.h"

static void write_options(FILE *out, const struct hf__option *table)
{
    for (; table != NULL && table->name != NULL; table++)
        fprintf(out, "%s=%s  %s\n", table->name, table->preset != NULL ? table->preset : "",
                table->help);
}

static void write_schemes(FILE *out, const struct hf__known *known)
{
    if (known->type == NULL) {
        fprintf(out, "%s%s", known->name, known->wrapper ? "+" : ":");
        return;
    }
    for (const char *const *s = known->type->schemes; *s != NULL; s++)
        fprintf(out, "%s%s%s", s != known->type->schemes ? " " : "", *s,
                known->wrapper ? "+" : ":");
}

static void write_both(FILE *schemes, FILE *options, const struct hf__known *known)
{
    write_schemes(schemes, known);
    if (known->type == NULL)
        return;
    write_options(options, known->type->options);
    if (!known->wrapper)
        write_options(options, hf__common_options);
}

/* 0 or HF_NO_MEMORY; the texts are to be freed either way. */
static int make_texts(const struct hf__known *known, char **schemes, char **options)
{
    size_t size;
    FILE *s = open_memstream(schemes, &size), *o = open_memstream(options, &size);
    int failed = s == NULL || o == NULL;

    if (!failed)
        write_both(s, o, known);
    if (s != NULL)
        failed |= fclose(s) != 0;
    if (o != NULL)
        failed |= fclose(o) != 0;
    return failed ? HF_NO_MEMORY : 0;
}

static int tell(const struct hf__known *known, hf_store_callback *found, void *arg)
{
    char *schemes = NULL, *options = NULL;
    int r = make_texts(known, &schemes, &options);

    if (r == 0) {
        const struct hf__store_type *type = known->type;
        hf_store_info info = {
            .name = known->name,
            .schemes = schemes,
            .summary = type != NULL ? type->summary : "",
            .capabilities = type != NULL ? type->capabilities : 0,
            .options = options,
            .ddl = type != NULL ? type->ddl : NULL,
            .missing = type != NULL ? NULL : known->missing,
        };
        found(&info, arg);
    }
    free(schemes);
    free(options);
    return r;
}

const char *hf_version(void)
{
    return HF_VERSION;
}

int hf_stores(hf_store_callback *found, void *arg)
{
    struct hf__known known;
    int cancel_state = hf__forbid_cancel();
    int r = found != NULL ? 0 : HF_INVALID;

    for (size_t i = 0; r == 0 && hf__known_store(i, &known); i++)
        r = tell(&known, found, arg);
    hf__allow_cancel(cancel_state);
    return r;
}
