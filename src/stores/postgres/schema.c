/* Which schema has the tables. Every statement names it, so neither a role's search_path nor
 * PGOPTIONS leads anybody to other tables (C1).
 *
 * All texts are written for `public`, and can be run as they stand; a schema that the URL names
 * takes its place. */
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "stores/postgres/postgres.h"

#include "base/banned.h"

#define STANDS   "public.holdfast_"
#define BECOMES  "\"%s\".holdfast_"
#define NAME_MAX 63 /* bytes of a name in PostgreSQL */

/* It is written into statements: between quotes, and between $$ in the functions. A temporary
 * schema would be another one in each session. */
int hf__pg_check_schema(const char *schema, hf_error *err)
{
    size_t len = schema != NULL ? strlen(schema) : 1;

    for (size_t i = 0; schema != NULL && i < len; i++) {
        unsigned char c = (unsigned char)schema[i];
        if (c < ' ' || c == 0x7f || strchr("\"'\\$", c) != NULL)
            len = 0;
    }
    if (len == 0 || len > NAME_MAX || (schema != NULL && strncmp(schema, "pg_", 3) == 0))
        return hf__fail(err, HF_INVALID,
                        "schema is a name of at most %d bytes, without quotes, backslashes and $,"
                        " that does not begin with pg_",
                        NAME_MAX);
    return 0;
}

const char *hf__pg_schema(const struct hf__pg *s)
{
    return s->set.schema != NULL ? s->set.schema : "public";
}

char *hf__pg_in_schema(const char *schema, const char *sql)
{
    size_t size = strlen(sql) + 1;

    for (const char *at = sql; (at = strstr(at, STANDS)) != NULL; at += strlen(STANDS))
        size += strlen(schema);
    char *text = malloc(size), *to = text;
    while (text != NULL && *sql != '\0') {
        const char *next = strstr(sql, STANDS);
        size_t len = next != NULL ? (size_t)(next - sql) : strlen(sql);
        memcpy(to, sql, len);
        to += len;
        sql += len;
        if (next != NULL) {
            to += snprintf(to, size - (size_t)(to - text), BECOMES, schema);
            sql += strlen(STANDS);
        }
    }
    if (text != NULL)
        *to = '\0';
    return text;
}

int hf__pg_ddl_of(const struct hf__url *url, char **ret_text, hf_error *err)
{
    const char *schema = hf__url_text(url, "schema");
    int r = hf__pg_check_schema(schema, err);

    if (r != 0)
        return r;
    if (schema == NULL)
        return hf__copy_text(hf__pg_ddl, ret_text, err);
    char *text = hf__pg_in_schema(schema, hf__pg_ddl);
    if (text == NULL ||
        asprintf(ret_text, "CREATE SCHEMA IF NOT EXISTS \"%s\";\n\n%s", schema, text) < 0)
        r = hf__fail(err, HF_NO_MEMORY, NULL);
    free(text);
    return r;
}

/* Looking ------------------------------------------------------------------ */

static void copy_cell(const PGresult *result, int column, char *buf, size_t size)
{
    snprintf(buf, size, "%s", PQgetvalue(result, 0, column));
}

int hf__pg_look_around(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns,
                       struct hf__pg_location *ret_location, hf_error *err)
{
    struct hf__pg_query q = {.sql = hf__pg_location_sql, .reads = true};
    PGresult *result = NULL;

    hf__pg_text(&q, hf__pg_schema(s));
    int r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);
    if (r == 0) {
        *ret_location = (struct hf__pg_location){
            .has_tables = hf__pg_cell_flag(result, 0, 0),
            .is_there = !PQgetisnull(result, 0, 3),
            .may_create = hf__pg_cell_flag(result, 0, 3),
            .all_may_create = hf__pg_cell_flag(result, 0, 4),
            .may_make = hf__pg_cell_flag(result, 0, 5),
        };
        copy_cell(result, 1, ret_location->others, sizeof ret_location->others);
        copy_cell(result, 2, ret_location->other, sizeof ret_location->other);
        copy_cell(result, 6, ret_location->role, sizeof ret_location->role);
        copy_cell(result, 7, ret_location->database, sizeof ret_location->database);
    }
    PQclear(result);
    return r;
}

int hf__pg_fail_missing(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns, hf_error *err)
{
    struct hf__pg_location at;
    int r = hf__pg_look_around(s, c, deadline_ns, &at, err);

    if (r != 0)
        return r;
    if (at.other[0] != '\0')
        return hf__fail(err, HF_DENIED,
                        "postgres: holdfast's tables are not in schema %s, but in %s; name the"
                        " right one in the URL (schema=%s)",
                        hf__pg_schema(s), at.others, at.other);
    return hf__fail(err, HF_DENIED,
                    "postgres: holdfast's tables are not in schema %s; create them with"
                    " `holdfast setup`",
                    hf__pg_schema(s));
}

/* Making ------------------------------------------------------------------- */

int hf__pg_make_room(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns, hf_error *err)
{
    struct hf__pg_location at;
    int r = hf__pg_look_around(s, c, deadline_ns, &at, err);

    if (r != 0)
        return r;
    if (!at.has_tables && at.other[0] != '\0' && s->set.schema == NULL)
        return hf__fail(
            err, HF_DENIED,
            "postgres: holdfast's tables are in schema %s already, and two sets of locks"
            " do not exclude each other; name it in the URL (schema=%s), or schema=public"
            " for a second set",
            at.others, at.other);
    if (at.has_tables && !at.may_create)
        return hf__fail(err, HF_DENIED,
                        "postgres: role %s may neither use nor change the tables in schema %s; see"
                        " the rights in `holdfast setup --print`, or let their owner run it",
                        at.role, hf__pg_schema(s));
    if (at.is_there && !at.may_create)
        return hf__fail(err, HF_DENIED,
                        "postgres: role %s may not create tables in schema %s; let its owner run"
                        " `holdfast setup`, or GRANT CREATE ON SCHEMA \"%s\" TO \"%s\"",
                        at.role, hf__pg_schema(s), hf__pg_schema(s), at.role);
    if (!at.is_there && !at.may_make)
        return hf__fail(err, HF_DENIED,
                        "postgres: there is no schema %s, and role %s may not make it; let the"
                        " owner of the database run `holdfast setup`, or GRANT CREATE ON DATABASE"
                        " \"%s\" TO \"%s\"",
                        hf__pg_schema(s), at.role, at.database, at.role);
    if (at.is_there)
        return 0;
    char sql[NAME_MAX + 40];
    snprintf(sql, sizeof sql, "CREATE SCHEMA IF NOT EXISTS \"%s\"", hf__pg_schema(s));
    return hf__pg_run(s, c, sql, deadline_ns, err);
}
