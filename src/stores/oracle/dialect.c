/* Where the databases differ that take this store's statements: one table of words, and one of how
 * a session begins. Everything is written for Oracle; a statement for another one is the same text
 * with some words replaced.
 *
 * To add one: a column in `words`, a row in the list below, its errors in errors.c. */
#include <stdlib.h>
#include <string.h>

#include "stores/oracle/oracle.h"

#include "base/banned.h"

enum { ORACLE, MARIADB, HSQLDB, COLUMNS };

/* Milliseconds as a timestamp, for people. */
#define INSTANT(ms) \
    "TIMESTAMP '1970-01-01 00:00:00 +00:00' + NUMTODSINTERVAL(" ms " / 1000, 'SECOND')"

/* A blank stands for any white space. NULL: as on Oracle. */
static const char *const words[][COLUMNS] = {
#ifdef HF__ORA_TEST_CLOCK
    {HF__ORA_CLOCK, HF__ORA_TEST_CLOCK, HF__ORA_TEST_CLOCK},
#else
    {HF__ORA_CLOCK, "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))",
     "(SELECT EXTRACT(DAY FROM d) * 86400000000 + EXTRACT(HOUR FROM d) * 3600000000"
     " + EXTRACT(MINUTE FROM d) * 60000000 + TRUNC(EXTRACT(SECOND FROM d) * 1000000)"
     " FROM (SELECT (SYSTIMESTAMP - TIMESTAMP '1970-01-01 00:00:00+0:00') DAY TO SECOND AS d"
     " FROM DUAL) t)"},
#endif
    {"HEXTORAW(", "UNHEX(", NULL},
    {"RAWTOHEX(", "HEX(", NULL},
    /* Not in MariaDB's routines; innodb_lock_wait_timeout=0 means the same. */
    {"= v_name FOR UPDATE NOWAIT", "= v_name FOR UPDATE", NULL},
    {INSTANT("since_ms"), "FROM_UNIXTIME(since_ms / 1000)", "TIMESTAMP(since_ms / 1000)"},
    {INSTANT("LEAST(until_ms, 253402214400000)"),
     "FROM_UNIXTIME(LEAST(until_ms, 253402214400000) / 1000)",
     "TIMESTAMP(LEAST(until_ms, 253402214400000) / 1000)"},
    {"UTL_RAW.CAST_TO_VARCHAR2(name)", "CONVERT(name USING utf8mb4)", "RAWTOHEX(name)"},
    {"UTL_RAW.CAST_TO_VARCHAR2(note)", "CONVERT(note USING utf8mb4)", "RAWTOHEX(note)"},
};

static const char *const oracle_session[] = {"ALTER SESSION SET ISOLATION_LEVEL = READ COMMITTED",
                                             NULL};

/* SYSDATE() follows the session's time zone. */
static const char *const mariadb_session[] = {
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION sql_mode = 'ORACLE', time_zone = '+00:00', innodb_lock_wait_timeout = 0", NULL};

static const char *const hsqldb_session[] = {
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED", NULL};

extern const struct hf__ora_meaning hf__ora_meanings[], hf__ora_mariadb_meanings[],
    hf__ora_hsqldb_meanings[];

static const struct hf__ora_dialect oracle = {
    .name = "oracle",
    .dbms = "Oracle",
    .column = ORACLE,
    .session = oracle_session,
    .use_schema = "ALTER SESSION SET CURRENT_SCHEMA = ",
    .has_routines = true,
    .introduce = {"BEGIN DBMS_APPLICATION_INFO.SET_MODULE('holdfast', '", "'); END;"},
    .self = "SELECT SYS_CONTEXT('USERENV', 'SESSION_USER'), SYS_CONTEXT('USERENV',"
            " 'CURRENT_SCHEMA'), SYS_CONTEXT('USERENV', 'DATABASE_ROLE') FROM DUAL",
    .others = "SELECT MIN(owner) FROM all_tables WHERE table_name = 'HOLDFAST_SCHEMA' AND owner <>"
              " SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')",
    .meanings = hf__ora_meanings,
};

static const struct hf__ora_dialect mariadb = {
    .name = "mariadb",
    .dbms = "MariaDB",
    .column = MARIADB,
    .session = mariadb_session,
    .use_schema = "USE ",
    .has_routines = true,
    .self = "SELECT CURRENT_USER(), DATABASE(), CASE @@global.read_only WHEN 0 THEN 'PRIMARY'"
            " ELSE 'READ ONLY' END FROM DUAL",
    .others = "SELECT MIN(table_schema) FROM information_schema.tables WHERE table_name ="
              " 'holdfast_schema' AND table_schema <> DATABASE()",
    .meanings = hf__ora_mariadb_meanings,
};

/* Its server says that it is PostgreSQL, so it has to be named. The driver believes it, and turns a
 * timeout into a statement that the server refuses; after that it begins no transactions. */
static const struct hf__ora_dialect hsqldb = {
    .name = "hsqldb",
    .column = HSQLDB,
    .session = hsqldb_session,
    .use_schema = "SET SCHEMA ",
    .self = "SELECT USER(), CURRENT_SCHEMA, 'PRIMARY' FROM DUAL",
    .others = "SELECT MIN(table_schema) FROM information_schema.tables WHERE table_name ="
              " 'HOLDFAST_SCHEMA' AND table_schema <> CURRENT_SCHEMA",
    .no_timeout = true,
    .meanings = hf__ora_hsqldb_meanings,
};

const struct hf__ora_dialect *const hf__ora_dialects[] = {&oracle, &mariadb, &hsqldb, NULL};

const struct hf__ora_dialect *hf__ora_dialect_named(const char *name)
{
    for (size_t i = 0; hf__ora_dialects[i] != NULL; i++) {
        if (strcmp(hf__ora_dialects[i]->name, name) == 0)
            return hf__ora_dialects[i];
    }
    return NULL;
}

const struct hf__ora_dialect *hf__ora_dialect_of(const char *dbms)
{
    for (size_t i = 0; hf__ora_dialects[i] != NULL; i++) {
        const char *begins = hf__ora_dialects[i]->dbms;
        if (begins != NULL && strncmp(begins, dbms, strlen(begins)) == 0)
            return hf__ora_dialects[i];
    }
    return NULL;
}

/* How many bytes at `at` are this word; 0: it is another. */
static size_t match(const char *at, const char *word)
{
    const char *from = at;

    for (; *word != '\0'; word++) {
        size_t blank = strspn(at, " \n");
        if (*word == ' ' && blank > 0)
            at += blank;
        else if (*word == *at)
            at++;
        else
            return 0;
    }
    return (size_t)(at - from);
}

/* The word that stands here in another dialect, NULL if it is the same in all. */
static const char *replace(const char *at, size_t column, size_t *ret_len)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t len = words[i][column] != NULL ? match(at, words[i][ORACLE]) : 0;
        if (len > 0) {
            *ret_len = len;
            return words[i][column];
        }
    }
    return NULL;
}

static size_t translate(const struct hf__ora_dialect *dialect, const char *sql, char *to)
{
    size_t used = 0;

    while (*sql != '\0') {
        size_t len = 1;
        const char *word = replace(sql, dialect->column, &len);
        size_t out = word != NULL ? strlen(word) : 1;
        if (to != NULL)
            memcpy(to + used, word != NULL ? word : sql, out);
        used += out;
        sql += len;
    }
    return used;
}

char *hf__ora_translate(const struct hf__ora_dialect *dialect, const char *sql)
{
    size_t len = translate(dialect, sql, NULL);
    char *to = malloc(len + 1);

    if (to == NULL)
        return NULL;
    translate(dialect, sql, to);
    to[len] = '\0';
    return to;
}
