/* Store URLs: taking one apart, and showing one without its secrets.
 *
 * The text is cut into spans first and each span is decoded afterwards, so that an escaped
 * delimiter never delimits. Whatever is refused here is refused before a store sees it: control
 * bytes, a NUL by %00 (the strings end in NUL), ports that are none. Options are checked in
 * options.c. */
#include "base_url.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base_error.h"
#include "base_percent.h"

#include "base_banned.h"

struct span {
    const char *at;
    size_t len;
};

/* One parse: what is being read, and where the complaint goes. */
struct parse {
    const char *text;
    struct hf__url *url;
    hf_error *err;
};

static int refuse(const struct parse *p, const char *reason)
{
    char shown[160];

    hf__url_redact(p->text, shown, sizeof shown);
    return hf__fail(p->err, HF_INVALID, "URL '%s': %s", shown, reason);
}

/* Cuts off what stands before the first of `stops`, or all. The stop itself stays in `rest`. */
static struct span cut(struct span *rest, const char *stops)
{
    struct span head = {rest->at, 0};

    while (head.len < rest->len && strchr(stops, head.at[head.len]) == NULL)
        head.len++;
    rest->at += head.len;
    rest->len -= head.len;
    return head;
}

static void skip(struct span *s, size_t len)
{
    s->at += len;
    s->len -= len;
}

static int decode(const struct parse *p, struct span s, char **ret_text)
{
    char *out = malloc(s.len + 1);
    size_t len = 0;

    if (out == NULL)
        return hf__fail(p->err, HF_NO_MEMORY, NULL);
    while (s.len > 0) {
        int byte = *s.at == '%' ? hf__percent_get(s.at, s.len) : (unsigned char)*s.at;
        if (byte <= 0) {
            free(out);
            return refuse(p, byte == 0
                                 ? "%00 cannot be part of it"
                                 : "after '%' there must be two hex digits; write %25 for '%'");
        }
        skip(&s, *s.at == '%' ? 3 : 1);
        out[len++] = (char)byte;
    }
    out[len] = '\0';
    *ret_text = out;
    return 0;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The length of "scheme:" at the start of `text` without the colon; 0 if there is none. */
static size_t scheme_length(const char *text)
{
    size_t len = 0;

    if (!is_letter(text[0]))
        return 0;
    while (is_letter(text[len]) || (text[len] >= '0' && text[len] <= '9') ||
           (text[len] != '\0' && strchr("+-.", text[len]) != NULL))
        len++;
    return text[len] == ':' ? len : 0;
}

static int parse_scheme(const struct parse *p, struct span *rest)
{
    size_t len = scheme_length(p->text);

    if (len == 0)
        return refuse(p, "it must begin with a scheme; for a file write sqlite:/path/locks.db");
    p->url->scheme = strndup(p->text, len);
    if (p->url->scheme == NULL)
        return hf__fail(p->err, HF_NO_MEMORY, NULL);
    for (char *c = p->url->scheme; *c != '\0'; c++) {
        if (is_letter(*c))
            *c |= 0x20;
    }
    skip(rest, len + 1);
    return 0;
}

/* "user:password@" in front of the hosts. A second '@' could be one in a password or a user before
 * another host: taking either for the other would lose a host, so that neither is taken. */
static int parse_user(const struct parse *p, struct span *authority)
{
    const char *at = memchr(authority->at, '@', authority->len);

    if (at == NULL)
        return 0;
    if (memrchr(authority->at, '@', authority->len) != at)
        return refuse(p, "write @ in a password as %40; user and password are given once, before "
                         "the first host");

    struct span info = {authority->at, (size_t)(at - authority->at)};
    skip(authority, info.len + 1);
    struct span user = cut(&info, ":");
    int code = decode(p, user, &p->url->user);
    if (code != 0 || info.len == 0)
        return code;
    skip(&info, 1);
    return decode(p, info, &p->url->password);
}

static bool port_is_good(struct span port)
{
    unsigned value = 0;

    if (port.len < 1 || port.len > 5)
        return false;
    for (size_t i = 0; i < port.len; i++) {
        if (port.at[i] < '0' || port.at[i] > '9')
            return false;
        value = value * 10 + (unsigned)(port.at[i] - '0');
    }
    return value >= 1 && value <= 65535;
}

static bool is_address(struct span s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (memchr("0123456789abcdefABCDEF:.", s.at[i], 24) == NULL)
            return false;
    }
    return s.len >= 2;
}

/* One of "h1:1,h2:2": a name, an address or [IPv6], and perhaps a port. */
static const char *find_fault_in_host(struct span host)
{
    if (host.len > 0 && host.at[0] == '[') {
        skip(&host, 1);
        struct span address = cut(&host, "]");
        if (host.len == 0 || !is_address(address))
            return "an IPv6 address is written as [::1]";
        skip(&host, 1);
        if (host.len > 0 && host.at[0] != ':')
            return "after [address] only :port may follow";
    } else {
        struct span name = cut(&host, ":");
        if (name.len == 0)
            return "a host is missing; write them as host or host:port, with a comma between two";
        if (memchr(name.at, '[', name.len) != NULL || memchr(name.at, ']', name.len) != NULL)
            return "an IPv6 address is written as [::1]";
    }
    if (host.len == 0)
        return NULL;
    skip(&host, 1);
    return port_is_good(host) ? NULL
                              : "a port is a number from 1 to 65535; in a password write / as %2F, "
                                "? as %3F and @ as %40, around an IPv6 address write [ ]";
}

/* Escapes in a host may not bring in what would be read as a delimiter or a control byte later. */
static const char *find_fault_in_escapes(struct span s)
{
    for (; s.len > 0; skip(&s, 1)) {
        int byte = hf__percent_get(s.at, s.len);
        if (byte == 0x7f || (byte > 0 && byte < 0x20) ||
            (byte > 0 && strchr(",:[]@", byte) != NULL))
            return "in a host, %XX may not stand for a control byte or one of , : [ ] @";
    }
    return NULL;
}

static int parse_hosts(const struct parse *p, struct span authority)
{
    struct span rest = authority;
    const char *fault = find_fault_in_escapes(authority);

    while (fault == NULL && authority.len > 0) {
        fault = find_fault_in_host(cut(&rest, ","));
        if (rest.len == 0)
            break;
        skip(&rest, 1);
    }
    return fault != NULL ? refuse(p, fault) : decode(p, authority, &p->url->host);
}

static int parse_authority(const struct parse *p, struct span *rest)
{
    struct span authority = {rest->at, 0};

    if (rest->len >= 2 && rest->at[0] == '/' && rest->at[1] == '/') {
        skip(rest, 2);
        authority = cut(rest, "/?");
    }
    int code = parse_user(p, &authority);
    return code != 0 ? code : parse_hosts(p, authority);
}

static int parse_setting(const struct parse *p, struct span s)
{
    struct span name = cut(&s, "=");
    struct hf__setting *setting = &p->url->settings[p->url->setting_count];

    if (name.len == 0 || s.len == 0)
        return refuse(p, "an option is written as name=value, with '&' between two");
    if (memchr(name.at, ';', name.len) != NULL) /* redact.c takes what is behind it for a name */
        return refuse(p, "there is a ';' in the name of an option; between two there is a '&'");
    skip(&s, 1);
    p->url->setting_count++;
    int code = decode(p, name, &setting->name);
    return code != 0 ? code : decode(p, s, &setting->value);
}

static int parse_settings(const struct parse *p, struct span rest)
{
    size_t count = 1;

    if (rest.len <= 1)
        return 0;
    for (size_t i = 0; i < rest.len; i++)
        count += rest.at[i] == '&';
    if (count > HF__SETTINGS_MAX)
        return refuse(p, "it has too many options");
    p->url->settings = calloc(count, sizeof *p->url->settings);
    if (p->url->settings == NULL)
        return hf__fail(p->err, HF_NO_MEMORY, NULL);
    while (rest.len > 0) {
        skip(&rest, 1); /* '?' or '&' */
        int code = parse_setting(p, cut(&rest, "&"));
        if (code != 0)
            return code;
    }
    return 0;
}

static int parse_text(const struct parse *p)
{
    struct span rest = {p->text, strlen(p->text)};

    if (rest.len > HF__URL_MAX)
        return hf__fail(p->err, HF_INVALID, "the URL is longer than %d bytes", HF__URL_MAX);
    for (size_t i = 0; i < rest.len; i++) {
        if ((unsigned char)rest.at[i] < 0x20 || rest.at[i] == 0x7f)
            return refuse(p, "it contains a control byte; write it as %XX");
    }
    p->url->text = strdup(p->text);
    if (p->url->text == NULL)
        return hf__fail(p->err, HF_NO_MEMORY, NULL);

    int code = parse_scheme(p, &rest);
    if (code == 0)
        code = parse_authority(p, &rest);
    if (code == 0)
        code = decode(p, cut(&rest, "?"), &p->url->path);
    return code != 0 ? code : parse_settings(p, rest);
}

int hf__url_parse(const char *text, struct hf__url *ret_url, hf_error *err)
{
    struct hf__url url = {0};
    struct parse p = {text, &url, err};

    if (text == NULL)
        return hf__fail(err, HF_INVALID, "a URL is needed, such as sqlite:/path/locks.db");
    int code = parse_text(&p);
    if (code != 0)
        hf__url_clear(&url);
    else
        *ret_url = url;
    return code;
}

void hf__url_clear(struct hf__url *url)
{
    for (size_t i = 0; i < url->setting_count; i++) {
        free(url->settings[i].name);
        free(url->settings[i].value);
    }
    free(url->settings);
    free(url->path);
    free(url->host);
    free(url->password);
    free(url->user);
    free(url->scheme);
    free(url->text);
    *url = (struct hf__url){0};
}

/* Only figures are an address: 127.example.org is a name, and anybody's. */
bool hf__url_is_loopback(const char *host)
{
    char name[INET6_ADDRSTRLEN];
    struct in_addr four;
    bool bracket = host[0] == '[';
    const char *from = host + bracket, *colon = strchr(from, ':');
    bool has_port = !bracket && colon != NULL && strchr(colon + 1, ':') == NULL;
    size_t len = bracket ? strcspn(from, "]") : has_port ? (size_t)(colon - from) : strlen(from);

    if (len >= sizeof name)
        return false;
    memcpy(name, from, len);
    name[len] = '\0';
    if (inet_pton(AF_INET, name, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return strcmp(name, "::1") == 0 || strcasecmp(name, "localhost") == 0;
}
