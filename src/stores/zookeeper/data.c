/* What a node says about its bidder: one line of key=value, values escaped as in URLs.
 *
 *      holdfast1 gen=0 waits=0 ttl=30000 delay=0 ticket=0123... pid=7 host=a user=b program=c
 * note=d
 *
 * It is written when the node is made and never changed, since a change would wake the clients of
 * others that watch the node; only a move to another session writes it anew, with the generation.
 * The directory of a lock says "holdfast1 left=7" (predecessors.c); nobody watches that. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/percent.h"
#include "stores/zookeeper/zk.h"

#include "base/banned.h"

static void put_escaped(char *buf, size_t size, const char *text)
{
    size_t used = 0;

    for (size_t n = 1; *text != '\0' && n > 0; text++) {
        bool plain = *text > ' ' && *text < 0x7f && *text != '%' && *text != '=';
        n = hf__percent_put(buf + used, size - 1 - used, *text, plain);
        used += n;
    }
    buf[used] = '\0';
}

char *hf__zk_describe(const struct hf__bid *bid, const struct hf__who *self)
{
    char host[300], user[300], program[300], note[3 * HF_NOTE_MAX + 8];
    char ticket[HF_TICKET_SIZE], *line = NULL;

    hf__ticket_format(&bid->ticket, ticket);
    put_escaped(host, sizeof host, self->host);
    put_escaped(user, sizeof user, self->user);
    put_escaped(program, sizeof program, self->program);
    put_escaped(note, sizeof note, bid->who->note);
    int r = asprintf(&line,
                     "holdfast1 gen=0 waits=0 ttl=%" PRId64 " delay=%" PRId64
                     " ticket=%s pid=%" PRId64 " host=%s user=%s program=%s note=%s%s",
                     hf__ttl_stored(bid->ttl_ms), bid->lock_delay_ms, ticket, self->pid, host, user,
                     program, note, bid->tell ? " tell=1" : "");
    return r < 0 ? NULL : line;
}

char *hf__zk_redescribe(const char *data, uint64_t generation, bool waits)
{
    const char *rest = strstr(data, " ttl=");
    char *line = NULL;
    int r = asprintf(&line, "holdfast1 gen=%" PRIu64 " waits=%d%s", generation, waits,
                     rest != NULL ? rest : "");

    return r < 0 ? NULL : line;
}

static void take_text(const char *value, char *buf, size_t size)
{
    size_t used = 0;

    for (; *value != '\0' && used + 1 < size; value++) {
        int byte = hf__percent_get(value, strlen(value));
        buf[used++] = byte >= 0 ? (char)byte : *value;
        value += byte >= 0 ? 2 : 0;
    }
    buf[used] = '\0';
}

static void take(struct hf__zk_details *d, const char *key, const char *value)
{
    if (strcmp(key, "gen") == 0)
        d->generation = strtoull(value, NULL, 10);
    else if (strcmp(key, "waits") == 0)
        d->waits = value[0] == '1';
    else if (strcmp(key, "ttl") == 0)
        d->ttl_ms = strtoll(value, NULL, 10);
    else if (strcmp(key, "delay") == 0)
        d->lock_delay_ms = strtoll(value, NULL, 10);
    else if (strcmp(key, "ticket") == 0)
        d->has_ticket = hf__ticket_parse(value, &d->ticket);
    else if (strcmp(key, "pid") == 0)
        d->pid = strtoll(value, NULL, 10);
    else if (strcmp(key, "host") == 0)
        take_text(value, d->host, sizeof d->host);
    else if (strcmp(key, "user") == 0)
        take_text(value, d->user, sizeof d->user);
    else if (strcmp(key, "program") == 0)
        take_text(value, d->program, sizeof d->program);
    else if (strcmp(key, "note") == 0)
        take_text(value, d->note, sizeof d->note);
    else if (strcmp(key, "tell") == 0)
        d->tells = value[0] == '1';
}

size_t hf__zk_format_value(const struct hf__value *value, uint64_t generation,
                           char buf[HF__ZK_VALUE_MAX])
{
    size_t used =
        (size_t)snprintf(buf, HF__ZK_VALUE_MAX, "holdfast1 gen=%" PRIu64 " order=%" PRIu64 "\n",
                         generation, value->order);

    memcpy(buf + used, value->bytes, value->len);
    return used + value->len;
}

bool hf__zk_parse_value(const char *data, int len, struct hf__value *ret)
{
    const char *line_end = len > 0 ? memchr(data, '\n', (size_t)len) : NULL;
    char line[80];

    *ret = (struct hf__value){0};
    if (len <= 0)
        return true; /* made, and not written yet */
    if (line_end == NULL || line_end - data >= (ptrdiff_t)sizeof line)
        return false;
    size_t line_len = (size_t)(line_end - data), left = (size_t)len - line_len - 1;
    memcpy(line, data, line_len);
    line[line_len] = '\0';
    if (sscanf(line, "holdfast1 gen=%" SCNu64 " order=%" SCNu64, &ret->generation, &ret->order) !=
            2 ||
        left > sizeof ret->bytes)
        return false;
    ret->len = left;
    memcpy(ret->bytes, line_end + 1, left);
    return true;
}

void hf__zk_format_left(int32_t number, char buf[HF__ZK_LEFT_MAX])
{
    snprintf(buf, HF__ZK_LEFT_MAX, "holdfast1 left=%" PRId32, number);
}

bool hf__zk_parse_left(const char *data, int len, int32_t *ret_number)
{
    static const char mark[] = "holdfast1 left=";
    const int mark_len = (int)sizeof mark - 1;
    char number[HF__ZK_LEFT_MAX], *end;

    if (data == NULL || len <= mark_len || len >= mark_len + (int)sizeof number ||
        memcmp(data, mark, (size_t)mark_len) != 0)
        return false;
    snprintf(number, sizeof number, "%.*s", len - mark_len, data + mark_len);
    long long value = strtoll(number, &end, 10);
    if (*end != '\0' || value < INT32_MIN || value > INT32_MAX)
        return false;
    *ret_number = (int32_t)value;
    return true;
}

/* Whoever may write to the directory may write this: so what no client of ours would write is taken
 * for a stranger's, and unknown keys are passed over, since a newer version may have more. */
void hf__zk_parse(const char *data, int len, struct hf__zk_details *ret)
{
    char line[HF__ZK_DATA_MAX], *save = NULL;

    memset(ret, 0, sizeof *ret);
    if (data == NULL || len < 10 || (size_t)len >= sizeof line ||
        memcmp(data, "holdfast1 ", 10) != 0) {
        ret->ttl_ms = -1; /* another client's */
        return;
    }
    memcpy(line, data, (size_t)len);
    line[len] = '\0';
    for (char *word = strtok_r(line, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');
        if (value == NULL)
            continue;
        *value = '\0';
        take(ret, word, value + 1);
    }
    if (ret->ttl_ms < 0 || ret->ttl_ms > HF_TTL_MAX_MS || ret->lock_delay_ms < 0 ||
        ret->lock_delay_ms > HF_DELAY_MAX_MS)
        *ret = (struct hf__zk_details){.ttl_ms = -1}; /* none of ours writes this */
    ret->ttl_ms = hf__ttl_of_stored(ret->ttl_ms);
}
