/* Where Oracle and MariaDB's ORACLE mode differ: one table of words, and one of how a session
 * begins. Everything is written for Oracle; a statement for MariaDB is the same text with some words
 * replaced. MariaDB is here because it can be had for tests. */
#include <stdlib.h>
#include <string.h>

#include "stores/oracle/oracle.h"

#include "base/banned.h"

/* Milliseconds as a timestamp, for people. */
#define INSTANT(ms) \
    "TIMESTAMP '1970-01-01 00:00:00 +00:00' + NUMTODSINTERVAL(" ms " / 1000, 'SECOND')"

/* Microseconds since 1970. */
#define CLOCK                                                                        \
    "(SELECT EXTRACT(DAY FROM d) * 86400000000 + EXTRACT(HOUR FROM d) * 3600000000"  \
    " + EXTRACT(MINUTE FROM d) * 60000000 + TRUNC(EXTRACT(SECOND FROM d) * 1000000)" \
    " FROM (SELECT SYSTIMESTAMP - TIMESTAMP '1970-01-01 00:00:00 +00:00' AS d FROM DUAL) t)"
#ifndef HF__ORA_TEST_CLOCK
#define HF__ORA_TEST_CLOCK "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))"
#endif

/* A blank stands for any white space. */
static const struct {
    const char *oracle, *mariadb;
} words[] = {
    {CLOCK, HF__ORA_TEST_CLOCK},
    {"HEXTORAW(", "UNHEX("},
    {"RAWTOHEX(", "HEX("},
    /* Not in MariaDB's routines; innodb_lock_wait_timeout=0 means the same. */
    {"= v_name FOR UPDATE NOWAIT", "= v_name FOR UPDATE"},
    {INSTANT("since_ms"), "FROM_UNIXTIME(since_ms / 1000)"},
    {INSTANT("LEAST(until_ms, 253402214400000)"),
     "FROM_UNIXTIME(LEAST(until_ms, 253402214400000) / 1000)"},
    {"UTL_RAW.CAST_TO_VARCHAR2(name)", "CONVERT(name USING utf8mb4)"},
    {"UTL_RAW.CAST_TO_VARCHAR2(note)", "CONVERT(note USING utf8mb4)"},
};

static const char *const oracle_session[] = {"ALTER SESSION SET ISOLATION_LEVEL = READ COMMITTED",
                                             NULL};

/* SYSDATE() follows the session's time zone. */
static const char *const mariadb_session[] = {
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION sql_mode = 'ORACLE', time_zone = '+00:00', innodb_lock_wait_timeout = 0", NULL};

extern const struct hf__ora_meaning hf__ora_meanings[], hf__ora_mariadb_meanings[];

static const struct hf__ora_dialect oracle = {
    .name = "oracle",
    .dbms = "Oracle",
    .session = oracle_session,
    .use_schema = "ALTER SESSION SET CURRENT_SCHEMA = ",
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
    .translate = true,
    .session = mariadb_session,
    .use_schema = "USE ",
    .self = "SELECT CURRENT_USER(), DATABASE(), CASE @@global.read_only WHEN 0 THEN 'PRIMARY'"
            " ELSE 'READ ONLY' END FROM DUAL",
    .others = "SELECT MIN(table_schema) FROM information_schema.tables WHERE table_name ="
              " 'holdfast_schema' AND table_schema <> DATABASE()",
    .meanings = hf__ora_mariadb_meanings,
};

static const struct hf__ora_dialect *const dialects[] = {&oracle, &mariadb, NULL};

const struct hf__ora_dialect *hf__ora_dialect_named(const char *name)
{
    for (size_t i = 0; dialects[i] != NULL; i++) {
        if (strcmp(dialects[i]->name, name) == 0)
            return dialects[i];
    }
    return NULL;
}

const struct hf__ora_dialect *hf__ora_dialect_of(const char *dbms)
{
    for (size_t i = 0; dialects[i] != NULL; i++) {
        if (strncmp(dialects[i]->dbms, dbms, strlen(dialects[i]->dbms)) == 0)
            return dialects[i];
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

/* The length; `to` NULL: it is only measured. */
static size_t translate(const char *sql, char *to)
{
    size_t used = 0;

    while (*sql != '\0') {
        const char *word = sql;
        size_t len = 0, out = 1;
        for (size_t i = 0; len == 0 && i < sizeof words / sizeof words[0]; i++) {
            len = match(sql, words[i].oracle);
            if (len > 0) {
                word = words[i].mariadb;
                out = strlen(word);
            }
        }
        if (to != NULL)
            memcpy(to + used, word, out);
        used += out;
        sql += len > 0 ? len : 1;
    }
    return used;
}

char *hf__ora_translate(const struct hf__ora_dialect *dialect, const char *sql)
{
    if (!dialect->translate)
        return strdup(sql);
    size_t len = translate(sql, NULL);
    char *to = malloc(len + 1);
    if (to == NULL)
        return NULL;
    translate(sql, to);
    to[len] = '\0';
    return to;
}
