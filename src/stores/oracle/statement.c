/* A statement and what goes into it, as the thread will find it that runs it.
 *
 * Texts for people are cut to printable ASCII: what a driver makes of other characters depends on
 * its settings, and a lock must not fail because of a program's odd name. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/oracle/oracle.h"

#include "base/banned.h"

#define TEXT_MAX 255 /* bytes in host, username, program */

static void start(struct hf__ora_conn *c)
{
    struct hf__ora_job *job = &c->job;

    hf__ora_rows_clear(&job->rows);
    free(job->once);
    job->once = NULL;
    job->sql = NULL;
    job->answers = job->too_much = false;
    job->param_count = job->used = 0;
}

void hf__ora_start(struct hf__ora_conn *c, const char *sql)
{
    start(c);
    c->job.sql = sql;
}

void hf__ora_start_once(struct hf__ora_conn *c, char *sql)
{
    start(c);
    c->job.once = sql;
}

/* Room for a parameter of so many bytes; NULL: there is none. */
static char *add(struct hf__ora_conn *c, size_t len, bool number)
{
    struct hf__ora_job *job = &c->job;

    if (job->param_count == HF__ORA_PARAMS || job->used + len + 1 > sizeof job->text) {
        job->too_much = true;
        return NULL;
    }
    char *to = job->text + job->used;
    job->params[job->param_count++] =
        (struct hf__ora_param){.at = job->used, .length = (SQLLEN)len, .number = number};
    job->used += len + 1;
    to[len] = '\0';
    return to;
}

void hf__ora_add_bytes(struct hf__ora_conn *c, const void *bytes, size_t len)
{
    static const char digits[] = "0123456789ABCDEF";
    const unsigned char *from = bytes;
    char *to = add(c, 2 * len, false);

    for (size_t i = 0; to != NULL && i < len; i++) {
        to[2 * i] = digits[from[i] >> 4];
        to[2 * i + 1] = digits[from[i] & 15];
    }
}

void hf__ora_add_text(struct hf__ora_conn *c, const char *text)
{
    size_t len = strnlen(text, TEXT_MAX);
    char *to = add(c, len, false);

    for (size_t i = 0; to != NULL && i < len; i++)
        to[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
}

void hf__ora_add_list(struct hf__ora_conn *c, const char *list, size_t len)
{
    char *to = add(c, len, false);

    if (to != NULL)
        memcpy(to, list, len);
}

void hf__ora_add_number(struct hf__ora_conn *c, int64_t number)
{
    char text[24];
    size_t len = (size_t)snprintf(text, sizeof text, "%" PRId64, number);
    char *to = add(c, len, true);

    if (to != NULL)
        memcpy(to, text, len);
}

void hf__ora_add_or_null(struct hf__ora_conn *c, int64_t number, int64_t null)
{
    hf__ora_add_number(c, number);
    if (number == null && !c->job.too_much)
        c->job.params[c->job.param_count - 1].length = SQL_NULL_DATA;
}

void hf__ora_add_who(struct hf__ora_conn *c, const struct hf__who *who)
{
    hf__ora_add_text(c, who->host);
    hf__ora_add_text(c, who->user);
    hf__ora_add_text(c, who->program);
    hf__ora_add_number(c, who->pid);
    hf__ora_add_bytes(c, who->note, strnlen(who->note, HF_NOTE_MAX));
}

const char *hf__ora_cell(const struct hf__ora_conn *c, size_t column)
{
    return c->job.rows.count > 0 && column < c->job.rows.columns ? c->job.rows.cells[column] : NULL;
}

bool hf__ora_split(char *text, const char **cells, size_t count)
{
    char *rest = NULL;

    for (size_t i = 0; i < count; i++) {
        const char *word = strtok_r(i == 0 ? text : NULL, " ", &rest);
        if (word == NULL)
            return false;
        cells[i] = strcmp(word, "-1") == 0 ? NULL : word;
    }
    return true;
}
