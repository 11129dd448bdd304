/* Who asks, in the comment at the head of a statement:
 *
 *      / *holdfast TICKET MODE TTL PID HOST,USER,PROGRAM,NOTE* /     (without the blanks)
 *
 * See session.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/percent.h"
#include "sql/session/session.h"

#include "base/banned.h"

#define WORD_MAX 100 /* of host, user and program as they are written */

/* Letters and digits as they are, everything else as %XX, so that nothing ends the comment. */
static const char *put_word(const char *text, char *out, size_t size)
{
    size_t used = 0;

    for (; *text != '\0' && used + 4 < size; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '.' || c == '-' || c == '_';
        used += hf__percent_put(out + used, size - used, *text, plain);
    }
    out[used] = '\0';
    return out;
}

void hf__session_comment_format(const struct hf__bid *bid, const struct hf__who *who,
                                char buf[HF__SESSION_COMMENT_MAX])
{
    char ticket[HF_TICKET_SIZE], host[WORD_MAX], user[WORD_MAX], program[WORD_MAX];
    char note[3 * HF_NOTE_MAX + 4];

    hf__ticket_format(&bid->ticket, ticket);
    snprintf(buf, HF__SESSION_COMMENT_MAX, "/*holdfast %s %c %" PRId64 " %" PRId64 " %s,%s,%s,%s*/",
             ticket, bid->mode == HF_SHARED ? 's' : 'x', hf__ttl_stored(bid->ttl_ms), who->pid,
             put_word(who->host, host, sizeof host), put_word(who->user, user, sizeof user),
             put_word(who->program, program, sizeof program),
             put_word(who->note, note, sizeof note));
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One %XX-escaped word up to a comma or the comment's end; gives back what follows it. */
static const char *read_word(const char *at, char *out, size_t size)
{
    size_t used = 0;

    while (*at != '\0' && *at != ',' && *at != '*') {
        char c = *at++;
        if (c == '%' && digit(at[0]) >= 0 && digit(at[1]) >= 0) {
            c = (char)(digit(at[0]) * 16 + digit(at[1]));
            at += 2;
        }
        if (used + 1 < size)
            out[used++] = c;
    }
    out[used] = '\0';
    return at + (*at == ',');
}

bool hf__session_comment_parse(const char *statement, struct hf__session_comment *ret_about)
{
    char ticket[HF_TICKET_SIZE], mode;
    long long ttl_ms, pid;
    int used = 0;

    if (sscanf(statement, "/*holdfast %32[0-9a-f] %c %lld %lld %n", ticket, &mode, &ttl_ms, &pid,
               &used) < 4 ||
        used == 0 || !hf__ticket_parse(ticket, &ret_about->ticket))
        return false;
    const char *at = statement + used;
    for (size_t i = 0; i < 4; i++)
        at = read_word(at, ret_about->text[i], sizeof ret_about->text[i]);
    ret_about->mode = mode == 's' ? HF_SHARED : HF_EXCLUSIVE;
    ret_about->ttl_ms = hf__ttl_of_stored(ttl_ms);
    ret_about->who = (struct hf__who){.host = ret_about->text[0],
                                      .user = ret_about->text[1],
                                      .program = ret_about->text[2],
                                      .note = ret_about->text[3],
                                      .pid = pid};
    return true;
}
