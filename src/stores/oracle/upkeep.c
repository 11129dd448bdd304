/* Creating the tables and the package, and removing what has been idle for long.
 *
 * A lock's row is kept for its generation. Without it the next one is taken from the wall clock
 * alone, which is above it as long as the clock was not put back by more than `retain`. */
#include <stdio.h>
#include <stdlib.h>

#include "stores/oracle/oracle.h"

#include "base/banned.h"

/* SQL files ---------------------------------------------------------------- */

/* The next statement of a text for SQL*Plus: it ends with a line "/". NULL: there is none, or no
 * memory (then `*at` does not move to the end). */
static char *next_statement(const char **at)
{
    for (;;) {
        *at += strspn(*at, " \n");
        if (strncmp(*at, "--", 2) != 0)
            break;
        *at += strcspn(*at, "\n"); /* a comment before a statement */
    }
    const char *end = strstr(*at, "\n/\n");
    if (end == NULL)
        return NULL;
    char *statement = strndup(*at, (size_t)(end - *at));
    if (statement != NULL)
        *at = end + 3;
    return statement;
}

/* What is there already stays as it is. */
static int run_file(struct hf__ora *s, struct hf__ora_conn *c, const char *file,
                    int64_t deadline_ns, hf_error *err)
{
    char *sql = hf__ora_translate(c->dialect, file), *statement;
    const char *at = sql;
    hf_error why = {0};
    int r = sql == NULL ? hf__fail(err, HF_NO_MEMORY, NULL) : 0;

    while (r == 0 && (statement = next_statement(&at)) != NULL) {
        hf__ora_start_once(c, statement);
        r = hf__ora_run(s, c, false, deadline_ns, &why);
        if (c->kind == HF__ORA_KIND_EXISTS || c->kind == HF__ORA_KIND_DUPLICATE)
            r = 0;
    }
    if (r == 0)
        r = hf__ora_commit(s, c, deadline_ns, &why);
    free(sql);
    if (r != 0 && err != NULL && sql != NULL)
        *err = why;
    return r;
}

/* The view is for people: whoever may not create it does without. Where all is there already the
 * right to create it is not needed. */
int hf__ora_setup(void *store, void *conn, int64_t deadline_ns, hf_error *err)
{
    struct hf__ora *s = store;
    struct hf__ora_conn *c = conn;
    int r = run_file(s, c, hf__ora_schema_sql, deadline_ns, err);

    if (r == 0)
        r = run_file(s, c, hf__ora_rules_sql, deadline_ns, err);
    if (r == 0)
        run_file(s, c, hf__ora_view_sql, deadline_ns, NULL);
    hf__sql_learn_again(&s->sql);
    return r == HF_DENIED && hf__ora_learn(s, c, deadline_ns, NULL) == 0 ? 0 : r;
}

/* Purging ------------------------------------------------------------------ */

static const char take_sql[] =
    "SELECT line FROM holdfast_lock WHERE name = HEXTORAW(?) FOR UPDATE NOWAIT";
static const char *const drops[] = {"DELETE FROM holdfast_holder WHERE name = HEXTORAW(?)",
                                    "DELETE FROM holdfast_waiter WHERE name = HEXTORAW(?)",
                                    "DELETE FROM holdfast_retired WHERE name = HEXTORAW(?)",
                                    "DELETE FROM holdfast_lock WHERE name = HEXTORAW(?)"};

struct purge {
    struct hf__ora *s;
    struct hf__ora_conn *c;
    int64_t deadline_ns, now_us, retain_ms;
    uint64_t *count;
};

/* Which locks are idle: this one, or (NULL) any. Names are hex digits. */
static int ask_idle(const struct purge *p, const char *name, hf_error *err)
{
    char low[2 * HF_NAME_MAX + 4], high[2 * HF_NAME_MAX + 4];

    if (name == NULL) {
        snprintf(low, sizeof low, "00");
        memset(high, 'F', sizeof high - 2);
        high[sizeof high - 2] = '\0';
    } else {
        snprintf(low, sizeof low, "%s", name);
        snprintf(high, sizeof high, "%s00", name);
    }
    hf__ora_start(p->c, hf__ora_idle_sql);
    hf__ora_add_list(p->c, low, strlen(low));
    hf__ora_add_list(p->c, high, strlen(high));
    hf__ora_add_number(p->c, p->now_us - p->retain_ms * 1000);
    for (int i = 0; i < 3; i++)
        hf__ora_add_number(p->c, p->now_us / 1000);
    return hf__ora_run(p->s, p->c, true, p->deadline_ns, err);
}

static int ask_about(const struct purge *p, const char *sql, const char *name, hf_error *err)
{
    hf__ora_start(p->c, sql);
    hf__ora_add_list(p->c, name, strlen(name));
    return hf__ora_run(p->s, p->c, false, p->deadline_ns, err);
}

/* Once its row is locked nobody works on it: what was seen before must still be so. A row that
 * somebody works on is passed over: it is not idle. */
static int purge_one(struct purge *p, const char *name, hf_error *err)
{
    hf_error why = {0};
    int r = ask_about(p, take_sql, name, &why);

    if (r != 0 && p->c->kind == HF__ORA_KIND_AGAIN) {
        hf__ora_rollback(p->s, p->c, p->deadline_ns);
        return 0;
    }
    if (r == 0)
        r = ask_idle(p, name, &why);
    bool idle = r == 0 && p->c->job.rows.count == 1;
    for (size_t i = 0; i < 4 && idle && r == 0; i++)
        r = ask_about(p, drops[i], name, &why);
    if (r == 0)
        r = hf__ora_commit(p->s, p->c, p->deadline_ns, &why);
    if (r == 0)
        *p->count += idle;
    else if (err != NULL)
        *err = why;
    return r;
}

int hf__ora_purge(void *store, void *conn, int64_t retain_ms, int64_t deadline_ns, uint64_t *count,
                  hf_error *err)
{
    struct purge p = {
        .s = store, .c = conn, .deadline_ns = deadline_ns, .retain_ms = retain_ms, .count = count};

    hf__ora_start(p.c, hf__ora_clock_sql);
    int r = hf__ora_run(p.s, p.c, true, p.deadline_ns, err);
    if (r != 0)
        return r;
    p.now_us = hf__sql_integer(hf__ora_cell(p.c, 0), 0);
    r = ask_idle(&p, NULL, err);
    struct hf__ora_rows names = p.c->job.rows;
    p.c->job.rows = (struct hf__ora_rows){0};
    int64_t enough_ns = hf__sql_soon(&p.s->base, deadline_ns); /* the next purge does the rest */
    for (size_t i = 0; r == 0 && i < names.count && hf__now_ns(p.s->base.host->env) < enough_ns;
         i++)
        r = names.cells[i] != NULL ? purge_one(&p, names.cells[i], err) : 0;
    hf__ora_rows_clear(&names);
    return r;
}
