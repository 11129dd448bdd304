/* layout=simple: names and values as text, and showing what is in the table. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/utf8.h"
#include "doorman/sound.h"
#include "stores/cassandra/simple.h"
#include "stores/search.h"

#include "base/banned.h"

/* Names -------------------------------------------------------------------- */

void hf__cs_name_text(const char *name, size_t len, char to[HF__CS_NAME_TEXT])
{
    static const char digits[] = "0123456789abcdef";

    if (name[0] != '\001' && hf__is_text(name, len)) {
        memcpy(to, name, len);
        to[len] = '\0';
        return;
    }
    *to++ = '\001';
    for (size_t i = 0; i < len; i++) {
        *to++ = digits[(unsigned char)name[i] >> 4];
        *to++ = digits[(unsigned char)name[i] & 15];
    }
    *to = '\0';
}

static int digit(unsigned char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hf__cs_name_bytes(struct hf__cql_bytes text, char to[HF_NAME_MAX], size_t *ret_len)
{
    bool hex = text.len > 1 && text.data[0] == '\001' && text.len % 2 == 1;

    for (size_t i = 1; hex && i < text.len; i++)
        hex = digit(text.data[i]) >= 0;
    *ret_len = hex ? text.len / 2 : text.len;
    if (*ret_len == 0 || *ret_len > HF_NAME_MAX)
        return false;
    if (!hex)
        memcpy(to, text.data, text.len);
    for (size_t i = 0; hex && i < *ret_len; i++)
        to[i] = (char)(digit(text.data[1 + 2 * i]) << 4 | digit(text.data[2 + 2 * i]));
    return true;
}

/* Values ------------------------------------------------------------------- */

void hf__cs_write_value(char *text, size_t size, const struct hf__bid *bid, int64_t since_ms)
{
    struct hf__who_text who;
    char *words[] = {who.host, who.user, who.program};

    hf__who_text_init(&who, bid->who);
    for (size_t i = 0; i < 3; i++) { /* a word each, or it could not be read back */
        for (char *at = words[i]; *at != '\0'; at++)
            *at = isspace((unsigned char)*at) ? '_' : *at;
        if (words[i][0] == '\0')
            words[i][0] = '-', words[i][1] = '\0';
    }
    snprintf(text, size, "%" PRId64 " %" PRId64 " %" PRId64 " %s %s %s %s",
             hf__ttl_stored(bid->ttl_ms), since_ms, who.pid, who.host, who.user, who.program,
             who.note);
}

struct hf__cs_value hf__cs_read_value(struct hf__cql_bytes text)
{
    struct hf__cs_value v = {.ttl_ms = -1};
    char copy[HF__CS_VALUE_TEXT];
    int used = 0;
    size_t len = text.len < sizeof copy - 1 ? text.len : sizeof copy - 1;

    if (len > 0)
        memcpy(copy, text.data, len);
    copy[len] = '\0';
    if (sscanf(copy, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %255s %255s %255s%n", &v.ttl_ms,
               &v.since_ms, &v.pid, v.who.host, v.who.user, v.who.program, &used) != 6 ||
        copy[used] != ' ' || v.ttl_ms < 0 || v.ttl_ms > HF_TTL_MAX_MS || v.since_ms < 0 ||
        v.since_ms > HF__INSTANT_MAX_MS) {
        v = (struct hf__cs_value){.ttl_ms = -1};
        used = -1;
    }
    v.ttl_ms = hf__ttl_of_stored(v.ttl_ms);
    snprintf(v.who.note, sizeof v.who.note, "%.1024s", &copy[used + 1]);
    return v;
}

/* Looking ------------------------------------------------------------------ */

/* A row put aside until it is its turn: rows come in the order of their hashes. */
struct kept {
    struct hf__ticket ticket;
    struct hf__cs_value value;
    int64_t left_ms;
    size_t name_len;
    char name[HF_NAME_MAX];
};

struct selection {
    const struct hf__search *search;
    struct kept *rows;
    size_t count, capacity;
};

static bool read_kept(const struct hf__cql_result *r, struct kept *to)
{
    struct hf__cql_bytes owner = hf__cql_column(r, 1);
    char ticket[HF_TICKET_SIZE] = "";
    int32_t left_s;

    if (owner.len == 0 || !hf__cs_name_bytes(hf__cql_column(r, 0), to->name, &to->name_len))
        return false;
    if (owner.len == sizeof ticket - 1)
        memcpy(ticket, owner.data, owner.len);
    if (!hf__ticket_parse(ticket, &to->ticket)) /* of somebody else's making: it has no ticket */
        to->ticket = (struct hf__ticket){0};
    to->value = hf__cs_read_value(hf__cql_column(r, 2));
    to->left_ms =
        hf__cql_get_integer(hf__cql_column(r, 3), &left_s) ? left_s * INT64_C(1000) : HF__NEVER;
    return true;
}

static bool keep(struct selection *all, const struct hf__cql_result *r)
{
    if (all->count == all->capacity) {
        size_t capacity = all->capacity == 0 ? 16 : 2 * all->capacity;
        void *grown = realloc(all->rows, capacity * sizeof *all->rows);
        if (grown == NULL)
            return false;
        all->rows = grown;
        all->capacity = capacity;
    }
    struct kept *row = &all->rows[all->count];
    if (read_kept(r, row) && hf__search_wants(all->search, row->name, row->name_len))
        all->count++;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;

    return hf__bytes_order(x->name, x->name_len, y->name, y->name_len);
}

static int show(struct hf__cs *s, const struct hf__search *search, struct kept *row)
{
    const struct hf_env *env = s->base.host->env;
    struct hf__cs_value *v = &row->value;
    int64_t now_ms = (int64_t)(env->wall_us(env->ctx) / 1000);
    struct hf__who who = {.host = hf__who_plain(v->who.host),
                          .user = hf__who_plain(v->who.user),
                          .program = hf__who_plain(v->who.program),
                          .note = hf__who_plain(v->who.note),
                          .pid = v->pid};
    struct hf__entry e = {.ticket = row->ticket,
                          .place = HF__PLACE_INSIDE,
                          .mode = HF_EXCLUSIVE,
                          .claimed = true,
                          .ttl_ms = v->ttl_ms >= 0 ? v->ttl_ms : HF__NEVER,
                          .since_ms =
                              v->since_ms > 0 && v->since_ms < now_ms ? now_ms - v->since_ms : 0,
                          .until_ms = row->left_ms,
                          .who = &who};

    if (e.until_ms > e.ttl_ms)
        e.until_ms = e.ttl_ms; /* as it was told at most */
    if (!hf__search_is_old_enough(search, &e))
        return 0;
    return search->found(search->ctx, row->name, row->name_len, &e);
}

int hf__cs_simple_inspect(struct hf__cs *s, const struct hf__search *search, int64_t deadline_ns,
                          hf_error *err)
{
    char text[HF__CS_NAME_TEXT] = "";
    bool one = search->name != NULL;
    struct selection all = {.search = search};

    if (one)
        hf__cs_name_text(search->name, search->name_len, text);
    struct hf__cql_value name = hf__cql_text(text);
    struct hf__cs_call call = {.query = one ? HF__CS_QUERY_READ_LEASE : HF__CS_QUERY_SCAN_LEASES,
                               .values = &name,
                               .value_count = one,
                               .page_size = one ? 0 : 200,
                               .deadline_ns = deadline_ns};
    struct hf__cql_request request = hf__cs_request(s, &call);
    struct hf__cql_result result = {0};
    int code = hf__cql_execute(s->cql, &request, &result, err);

    while (code == 0) {
        while (code == 0 && hf__cql_next_row(&result)) {
            if (!keep(&all, &result))
                code = hf__fail(err, HF_NO_MEMORY, NULL);
        }
        if (code != 0 || !result.has_more)
            break;
        code = hf__cql_next_page(s->cql, &request, &result, err);
    }
    hf__cql_result_clear(&result);
    if (all.count > 1)
        qsort(all.rows, all.count, sizeof *all.rows, by_name);
    for (size_t i = 0; i < all.count && code == 0; i++)
        code = show(s, search, &all.rows[i]);
    free(all.rows);
    return code;
}
