/* What Oracle's errors become: every number of the map is a row. The server is a script. */
#include "script.h"

extern const struct hf__ora_meaning hf__ora_meanings[], hf__ora_mariadb_meanings[];

#define CALL "execute {call holdfast_rules.attempt"

/* Every number of Oracle's map: where it comes, what it means, what the user is told. */
static const struct row {
    const char *when; /* connect, or a part of the statement that fails */
    const char *state;
    int native, code;
    bool again; /* tried again, and then it goes well */
    const char *says;
} rows[] = {
    {"attempt", "23000", 1, HF_CORRUPT, false, "changed by hand"},
    {"connect", "HY000", 18, HF_UNAVAILABLE, false, "max_active"},
    {"connect", "HY000", 20, HF_UNAVAILABLE, false, "max_active"},
    {"attempt", "08S01", 28, HF_UNKNOWN, false, "KILL SESSION"},
    {"attempt", "HY000", 54, HF_UNAVAILABLE, true, "V$LOCK"},
    {"attempt", "40001", 60, HF_UNAVAILABLE, true, "deadlock"},
    {"attempt", "HY000", 600, HF_UNKNOWN, false, "alert log"},
    {"attempt", "42S22", 904, HF_DENIED, true, "another version"},
    {"attempt", "42000", 913, HF_DENIED, true, "another version"},
    {"version", "42S02", 942, HF_DENIED, false, "holdfast setup"},
    {"attempt", "42000", 947, HF_DENIED, true, "another version"},
    {"attempt", "42S01", 955, HF_DENIED, false, "already"},
    {"attempt", "08003", 1012, HF_UNAVAILABLE, false, "nothing was sent"},
    {"attempt", "HY008", 1013, HF_UNKNOWN, false, "cancelled"},
    {"connect", "28000", 1017, HF_DENIED, false, "password_file"},
    {"attempt", "42000", 1031, HF_DENIED, true, "rights"},
    {"connect", "HY000", 1033, HF_UNAVAILABLE, false, "starting or stopping"},
    {"connect", "HY000", 1034, HF_UNAVAILABLE, false, "does not run"},
    {"connect", "28000", 1045, HF_DENIED, false, "CREATE SESSION"},
    {"attempt", "08S01", 1089, HF_UNKNOWN, false, "shutting down"},
    {"attempt", "HY000", 1403, HF_UNAVAILABLE, true, "removed meanwhile"},
    {"connect", "HY000", 1435, HF_DENIED, false, "no such user"},
    {"attempt", "HY000", 1536, HF_FULL, false, "quota"},
    {"attempt", "HY000", 1653, HF_FULL, false, "full"},
    {"attempt", "HY000", 2049, HF_UNAVAILABLE, true, "distributed"},
    {"attempt", "40002", 2091, HF_UNAVAILABLE, true, "rolled back"},
    {"attempt", "08S01", 3113, HF_UNKNOWN, false, "connection was lost"},
    {"attempt", "08S01", 3114, HF_UNAVAILABLE, false, "nothing was sent"},
    {"attempt", "08S01", 3135, HF_UNKNOWN, false, "connection was lost"},
    {"attempt", "HY000", 4021, HF_UNAVAILABLE, true, "package"},
    {"attempt", "HY000", 4061, HF_UNAVAILABLE, true, "replaced"},
    {"attempt", "HY000", 4063, HF_DENIED, true, "has errors"},
    {"attempt", "HY000", 4068, HF_UNAVAILABLE, true, "replaced"},
    {"attempt", "HY000", 6550, HF_DENIED, true, "holdfast setup"},
    {"attempt", "40001", 8177, HF_UNAVAILABLE, true, "try again"},
    {"connect", "HY000", 12154, HF_UNAVAILABLE, false, "tnsnames.ora"},
    {"connect", "HYT00", 12170, HF_UNAVAILABLE, false, "listener"},
    {"connect", "08004", 12514, HF_UNAVAILABLE, false, "service"},
    {"connect", "08004", 12541, HF_UNAVAILABLE, false, "is the server running"},
    {"connect", "08004", 12543, HF_UNAVAILABLE, false, "reached"},
    {"connect", "08004", 12545, HF_UNAVAILABLE, false, "reached"},
    {"attempt", "22001", 12899, HF_INVALID, false, "too long"},
    {"attempt", "HY000", 16000, HF_UNAVAILABLE, false, "read-only"},
    {"attempt", "08S01", 25401, HF_UNKNOWN, false, "failover"},
    {"attempt", "40001", 25402, HF_UNAVAILABLE, false, "rolled back"},
    {"attempt", "08S01", 25408, HF_UNKNOWN, false, "replayed"},
    {"connect", "28000", 28000, HF_DENIED, false, "account is locked"},
    {"connect", "28000", 28001, HF_DENIED, false, "expired"},
    {"attempt", "HY000", 30006, HF_UNAVAILABLE, true, "V$LOCK"},
    /* What has no number of Oracle's is told by its SQLSTATE. */
    {"connect", "08001", 0, HF_UNAVAILABLE, false, "is the server running"},
    {"attempt", "08003", 0, HF_UNAVAILABLE, false, "nothing was sent"},
    {"connect", "08004", 0, HF_DENIED, false, "refused"},
    {"attempt", "08S01", 0, HF_UNKNOWN, false, "connection was lost"},
    {"attempt", "23000", 0, HF_CORRUPT, false, "contradicts"},
    {"connect", "28000", 0, HF_DENIED, false, "password_file"},
    {"attempt", "40001", 0, HF_UNAVAILABLE, true, "try again"},
    {"attempt", "42501", 0, HF_DENIED, true, "rights"},
    {"attempt", "42S01", 0, HF_DENIED, false, "already"},
    {"version", "42S02", 0, HF_DENIED, false, "holdfast setup"},
    {"version", "42000", 0, HF_DENIED, false, "holdfast setup"},
    {"attempt", "HYT00", 0, HF_UNKNOWN, false, "in time"},
    {"attempt", "HYT01", 0, HF_UNKNOWN, false, "in time"},
    {"attempt", "HY008", 0, HF_UNKNOWN, false, "cancelled"},
    {"attempt", "HY018", 0, HF_UNKNOWN, false, "cancelled"},
    /* What is not known at all may have come after the COMMIT. */
    {"attempt", "HY000", 4711, HF_UNKNOWN, false, "ORA-04711"},
};

static void write_fault(char *to, size_t size, int times, const struct row *row)
{
    const char *match = strcmp(row->when, "version") == 0   ? "MAX(version)"
                        : strcmp(row->when, "attempt") == 0 ? "rules.attempt"
                                                            : "*";

    snprintf(to, size, "%d %s %s %s %d %s%05d: as the server says", times,
             strcmp(row->when, "connect") == 0 ? "connect" : "execute", match, row->state,
             row->native, row->native != 0 ? "ORA-" : "", row->native);
}

/* A conflict is tried again until the time is up. If the machine is busy just then, the last try is not
 * answered, and the outcome is unknown, or that of a connection that did not come about: then there is
 * more time. */
static int attempt_until_it_speaks(struct world *w, const struct row *row)
{
    int64_t ms = row->again ? 500 : AMPLE_MS;

    for (;; ms *= 2) {
        struct hf__answer answer = {0};
        int r = attempt(w, ms, &answer);
        if (ms >= AMPLE_MS || (r == row->code && strstr(w->walk.err.text, row->says) != NULL))
            return r;
    }
}

static void c6_every_error_has_one_meaning(void **state)
{
    struct world *w = *state;

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *row = &rows[i];
        char line[200], what[40];
        snprintf(what, sizeof what, "%s %d", row->state, row->native);
        write_fault(line, sizeof line, 0, row);
        script(w, "", line);
        check_number(what, attempt_until_it_speaks(w, row), row->code);
        check_contains(what, w->walk.err.text, row->says);
        check_lacks(what, w->walk.err.text, "[Oracle]");
        check_lacks(what, w->walk.err.text, "Sesam");
        check_number(what, w->walk.err.store_code, row->native);
    }
}

static void c1_a_conflict_is_tried_again_and_nothing_else_is(void **state)
{
    struct world *w = *state;

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *row = &rows[i];
        struct hf__answer answer = {0};
        char line[200], what[40];
        snprintf(what, sizeof what, "%s %d, once", row->state, row->native);
        write_fault(line, sizeof line, 1, row);
        script(w, "", line);
        int r = attempt(w, AMPLE_MS, &answer);
        if (row->again) {
            check_text(what, w->walk.err.text, "");
            check_number(what, r, 0);
            check_number(what, answer.verdict, HF__VERDICT_GRANTED);
            check_number(what, count(w, CALL), 2);
        } else if (strcmp(row->when, "version") != 0) { /* it looks once more */
            check_number(what, r, row->code);
            check_number(what, count(w, CALL), strcmp(row->when, "attempt") == 0);
        }
    }
}

static void every_number_of_the_map_is_a_row_here(void **state)
{
    (void)state;
    for (const struct hf__ora_meaning *m = hf__ora_meanings; m->native != 0; m++) {
        size_t i = 0;
        while (i < COUNT(rows) && rows[i].native != m->native)
            i++;
        if (i == COUNT(rows))
            fail_msg("ORA-%05ld is not tested", m->native);
    }
}

static void mariadb_has_numbers_of_its_own(void **state)
{
    static const struct {
        long native;
        int code;
        enum hf__ora_kind kind;
    } cases[] = {
        {1213, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN}, {1205, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN},
        {1020, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN}, {1329, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN},
        {1317, HF_UNKNOWN, HF__ORA_KIND_OTHER},     {1969, HF_UNKNOWN, HF__ORA_KIND_OTHER},
        {1053, HF_UNKNOWN, HF__ORA_KIND_LOST},      {1927, HF_UNKNOWN, HF__ORA_KIND_LOST},
        {1180, HF_UNKNOWN, HF__ORA_KIND_OTHER},     {2013, HF_UNKNOWN, HF__ORA_KIND_LOST},
        {2006, HF_UNAVAILABLE, HF__ORA_KIND_LOST},  {2002, HF_UNAVAILABLE, HF__ORA_KIND_OTHER},
        {2003, HF_UNAVAILABLE, HF__ORA_KIND_OTHER}, {1040, HF_UNAVAILABLE, HF__ORA_KIND_OTHER},
        {1044, HF_DENIED, HF__ORA_KIND_CHANGED},    {1045, HF_DENIED, HF__ORA_KIND_OTHER},
        {1049, HF_DENIED, HF__ORA_KIND_OTHER},      {1050, HF_DENIED, HF__ORA_KIND_EXISTS},
        {1142, HF_DENIED, HF__ORA_KIND_CHANGED},    {1146, HF_DENIED, HF__ORA_KIND_CHANGED},
        {1227, HF_DENIED, HF__ORA_KIND_CHANGED},    {1305, HF_DENIED, HF__ORA_KIND_CHANGED},
        {1318, HF_DENIED, HF__ORA_KIND_CHANGED},    {1370, HF_DENIED, HF__ORA_KIND_CHANGED},
        {1062, HF_CORRUPT, HF__ORA_KIND_DUPLICATE}, {1114, HF_FULL, HF__ORA_KIND_OTHER},
        {1406, HF_INVALID, HF__ORA_KIND_OTHER},
    };
    size_t known = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf__ora_trouble t = {.state = "HY000", .native = cases[i].native, .text = "x"};
        enum hf__ora_kind kind;
        hf_error err = {0};
        check_number("code", hf__ora_fail(hf__ora_dialect_named("mariadb"), &t, false, &kind, &err),
                     cases[i].code);
        check_number("kind", kind, cases[i].kind);
    }
    while (hf__ora_mariadb_meanings[known].native != 0)
        known++;
    check_number("rows", (int64_t)known, COUNT(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c6_every_error_has_one_meaning),
        cmocka_unit_test(c1_a_conflict_is_tried_again_and_nothing_else_is),
        cmocka_unit_test(every_number_of_the_map_is_a_row_here),
        cmocka_unit_test(mariadb_has_numbers_of_its_own),
    };

    return cmocka_run_group_tests_name("oracle_errors", tests, world_setup, world_teardown);
}
