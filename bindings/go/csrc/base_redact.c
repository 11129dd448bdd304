/* URLs for messages, without what must stay secret.
 *
 * The text may be anything, such as a URL that was refused because its password was not escaped. So
 * this does not parse: it hides from the first colon after the scheme to the last '@', and
 * everything behind the '=' of the first option that sounds secret, whose value may hold a raw
 * '&'. */
#include <stdio.h>
#include <string.h>

#include "base_percent.h"
#include "base_url.h"

#include "base_banned.h"

#define NAME_MAX_SHOWN 64 /* an option with a longer name counts as secret */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Options that say where a secret is, and are none: password_file, password_env, passfile. */
static bool is_pointer(const char *plain)
{
    static const char *const ends[] = {"_file", "_env", "passfile"};
    size_t len = strlen(plain);

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t end = strlen(ends[i]);
        if (len >= end && strcmp(plain + len - end, ends[i]) == 0)
            return true;
    }
    return false;
}

bool hf__option_is_secret(const char *name)
{
    static const char *const words[] = {"pass", "pwd", "secret", "token", "credential"};
    char plain[NAME_MAX_SHOWN + 1];
    size_t len = strlen(name);

    if (len > NAME_MAX_SHOWN)
        return true;
    for (size_t i = 0; i <= len; i++)
        plain[i] = lower(name[i]);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(plain, words[i]) != NULL)
            return !is_pointer(plain);
    }
    return false;
}

/* The same for a name as it stands in a URL, perhaps with escapes. */
static bool sounds_secret(const char *name, size_t len)
{
    char plain[NAME_MAX_SHOWN + 1];
    size_t out = 0;
    unsigned byte;

    for (size_t i = 0; i < len; i++, out++) {
        if (out == NAME_MAX_SHOWN)
            return true;
        plain[out] = name[i];
        if (name[i] == '%' && i + 2 < len && sscanf(name + i + 1, "%2x", &byte) == 1) {
            plain[out] = (char)byte;
            i += 2;
        }
    }
    plain[out] = '\0';
    return hf__option_is_secret(plain);
}

/* Where the value of the first secret option begins; the end of the text if there is none. At each
 * '=' all since the last '&' or ';' counts as the name, so that the pairs of a driver string are
 * seen too ("connect=UID=a;PWD=b"). */
static const char *find_secret_value(const char *text)
{
    const char *at = strchr(text, '?'), *name = at != NULL ? at + 1 : NULL;

    for (; at != NULL && *at != '\0'; at++) {
        if (*at == '&' || *at == ';')
            name = at + 1;
        if (*at == '=' && sounds_secret(name, (size_t)(at - name)))
            return at + 1;
    }
    return text + strlen(text);
}

/* The colon between user and password, if that is what it is. */
static const char *find_colon(const char *text)
{
    const char *colon = strchr(text, ':');

    if (colon == NULL || colon[1] != '/' || strcspn(text, "/?@[ ") < (size_t)(colon - text))
        return colon; /* no scheme, or none that is followed by an authority */
    return strchr(colon + 1 + strspn(colon + 1, "/"), ':');
}

struct writer {
    char *buf;
    size_t len, size;
};

/* Adds one byte as text, or nothing and false if "..." would no longer fit after it. */
static bool put(struct writer *w, char c)
{
    size_t room = w->size - w->len - sizeof "...";
    size_t put = hf__percent_put(w->buf + w->len, room, c, c > 0x20 && c < 0x7f);

    w->len += put;
    return put > 0;
}

static bool put_all(struct writer *w, const char *from, const char *to)
{
    while (from < to) {
        if (!put(w, *from++))
            return false;
    }
    return true;
}

bool hf__url_is_redacted(const char *url)
{
    char shown[HF__URL_MAX + 1];

    return strcmp(url, HF__URL_HIDDEN) == 0 ||
           (hf__url_redact(url, shown, sizeof shown) && strcmp(shown, url) == 0);
}

bool hf__url_redact(const char *text, char *buf, size_t size)
{
    static const char stars[] = HF__URL_HIDDEN;
    struct writer w = {buf, 0, size};

    if (size < sizeof "...") {
        if (size > 0)
            buf[0] = '\0';
        return true;
    }

    const char *end = text + strlen(text);
    const char *hidden = find_secret_value(text), *colon = find_colon(text);
    const char *at = memrchr(text, '@', (size_t)(hidden - text)), *last = strrchr(text, '@');
    bool whole = true, hid = false;
    if (colon != NULL && last != NULL && last > colon) {
        if (at == NULL || at < colon) {
            if (hidden > colon)
                hidden = colon + 1; /* the '@' is behind something secret: hide it all */
        } else {
            whole = put_all(&w, text, colon + 1) && put_all(&w, stars, stars + 3);
            text = at;
            hid = true;
        }
    }
    whole = whole && put_all(&w, text, hidden) && (hidden == end || put_all(&w, stars, stars + 3));
    memcpy(buf + w.len, whole ? "" : "...", whole ? 1 : sizeof "...");
    return hid || hidden != end;
}
