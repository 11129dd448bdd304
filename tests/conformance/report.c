/* See report.h. */
#include "report.h"

static const struct capability {
    uint32_t bit;
    const char *name, *text;
} capabilities[] = {
#define X(id, bit, name, text) {id, name, text},
    HF_CAPABILITIES(X)
#undef X
};
#define CAPABILITY_COUNT (sizeof capabilities / sizeof capabilities[0])

/* "c5_..." is of clause C5. */
static const char *clause_of(const char *name, char buf[8])
{
    size_t digits = strspn(name + 1, "0123456789");

    snprintf(buf, 8, "C%.*s", (int)digits, name + 1);
    return buf;
}

void report_name(const struct conformance_case *c)
{
    char clause[8];

    printf("%-3s  %s\n", clause_of(c->name, clause), c->name);
}

void report_case(const char *result, const struct conformance_case *c, const char *text)
{
    char clause[8];

    printf("%-4s  %-3s  %s  %s\n", result, clause_of(c->name, clause), c->name, text);
    fflush(stdout);
}

void report_skip(const struct conformance_case *c, uint32_t missing)
{
    char why[400] = "this store does not have: ";
    size_t used = strlen(why), start = used;

    for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
        if (missing & capabilities[i].bit)
            used += (size_t)snprintf(why + used, sizeof why - used, "%s%s",
                                     used > start ? ", " : "", capabilities[i].text);
    }
    report_case("skip", c, why);
}

void report_table_head(void)
{
    printf("| store |");
    for (size_t i = 0; i < CAPABILITY_COUNT; i++)
        printf(" %s |", capabilities[i].name);
    printf("\n|---|");
    for (size_t i = 0; i < CAPABILITY_COUNT; i++)
        printf("---|");
    printf("\n");
}

void report_row(const char *url, uint32_t can, uint32_t broken)
{
    static const char *const ways[] = {"hold=", "fair="}; /* of their own to use the same server */

    printf("| %.*s", (int)strcspn(url, ":"), url);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const char *way = strstr(url, ways[i]);
        if (way != NULL)
            printf(" %.*s", (int)strcspn(way, "&"), way);
    }
    printf(" |");
    for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
        uint32_t bit = capabilities[i].bit;
        printf(" %s |", !(can & bit) ? "-" : broken & bit ? "FAILED" : "yes");
    }
    printf("\n");
}
