/* What `doctor` tells of an ensemble: who is there and who leads, by the four-letter word `srvr`
 * that every server answers by default; which sessions it gives, by asking for the shortest and the
 * longest; who may read and delete; how long a write takes. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stores/zookeeper/zk.h"
#include "util/banned.h"

struct doctor {
    struct zk *zk;
    hf_finding_callback *found;
    void *arg;
    int64_t deadline_ns;
    unsigned servers, answered, leaders;
};

/* The bugs that can keep a dead holder's node, or lose a live one's, and the release that ended
 * each of them in its line. */
static const struct bug {
    int major, minor, fixed_patch;
    const char *text;
} bugs[] = {
    {3, 4, 11, "ZOOKEEPER-2355: the node of a dead session may stay on a follower"},
    {3, 5, 4, "ZOOKEEPER-2355: the node of a dead session may stay on a follower"},
    {3, 5, 5, "ZOOKEEPER-3144: ephemeral nodes may differ between servers after a snapshot"},
};

static void tell(const struct doctor *d, int level, const char *clause, const char *format, ...)
    HF__PRINTF(4, 5);

static void tell(const struct doctor *d, int level, const char *clause, const char *format, ...)
{
    char text[300];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    d->found(level, clause, text, d->arg);
}

static int ms_left(const struct doctor *d)
{
    int64_t left_ns = d->deadline_ns - hf__now_ns(d->zk->base.host->env);

    if (left_ns > 1000 * HF__NS_PER_MS)
        return 1000;
    return left_ns > 0 ? (int)(left_ns / HF__NS_PER_MS) : 0;
}

static bool exchange(const struct doctor *d, int fd, char *buf, size_t size)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    size_t used = 0;
    ssize_t n = 1;

    if (poll(&p, 1, ms_left(d)) != 1 || send(fd, "srvr", 4, MSG_NOSIGNAL) != 4)
        return false;
    p.events = POLLIN;
    while (n > 0 && used + 1 < size && poll(&p, 1, ms_left(d)) == 1) {
        n = recv(fd, buf + used, size - 1 - used, 0);
        used += n > 0 ? (size_t)n : 0;
    }
    buf[used] = '\0';
    return used > 0;
}

/* `host` is "name:port". */
static bool ask_server(const struct doctor *d, const char *host, char *buf, size_t size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    char name[256];
    const char *colon = strrchr(host, ':');
    bool ok = false;

    snprintf(name, sizeof name, "%.*s", (int)(colon - host), host);
    if (getaddrinfo(name, colon + 1, &hints, &list) != 0)
        return false;
    for (struct addrinfo *a = list; a != NULL && !ok; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            continue;
        if (connect(fd, a->ai_addr, a->ai_addrlen) == 0 || errno == EINPROGRESS)
            ok = exchange(d, fd, buf, size);
        close(fd);
    }
    freeaddrinfo(list);
    return ok;
}

static void tell_bugs(const struct doctor *d, const char *host, const char *version)
{
    int major = 0, minor = 0, patch = 0;

    if (sscanf(version, "%d.%d.%d", &major, &minor, &patch) != 3)
        return;
    for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
        const struct bug *b = &bugs[i];
        if (b->major == major && b->minor == minor && patch < b->fixed_patch)
            tell(d, 3, "C3", "%s runs %d.%d.%d: %s; use %d.%d.%d or later", host, major, minor,
                 patch, b->text, major, minor, b->fixed_patch);
    }
}

static void tell_server(struct doctor *d, const char *host)
{
    char answer[4096], version[40] = "?", mode[40] = "?";

    d->servers++;
    if (!ask_server(d, host, answer, sizeof answer)) {
        tell(d, 2, NULL, "%s does not answer", host);
        return;
    }
    const char *at = strstr(answer, "version: ");
    if (at != NULL)
        snprintf(version, sizeof version, "%.*s", (int)strcspn(at + 9, ",-\n"), at + 9);
    at = strstr(answer, "Mode: ");
    if (at == NULL) {
        tell(d, 1, NULL, "%s answers, but not to srvr: see 4lw.commands.whitelist", host);
        return;
    }
    snprintf(mode, sizeof mode, "%.*s", (int)strcspn(at + 6, "\n"), at + 6);
    d->answered++;
    d->leaders += strcmp(mode, "leader") == 0 || strcmp(mode, "standalone") == 0;
    tell(d, 0, NULL, "%s is a %s, version %s", host, mode, version);
    tell_bugs(d, host, version);
}

static void tell_servers(struct doctor *d)
{
    char *hosts = strdup(d->zk->hosts), *save = NULL;

    for (char *host = hosts != NULL ? strtok_r(hosts, ",", &save) : NULL; host != NULL;
         host = strtok_r(NULL, ",", &save))
        tell_server(d, host);
    free(hosts);
    if (d->answered > 0 && d->leaders == 0)
        tell(d, 2, "C1",
             "no server of the list leads: the leader is not in the URL, or there is "
             "none and locks cannot be taken");
    if (d->servers == 1)
        tell(d, 1, NULL, "the URL names one server: if it is down, no lock can be taken or kept");
}

static void tell_sessions(const struct doctor *d)
{
    int64_t shortest_ms = hf__zk_negotiate(d->zk, HF_TTL_MIN_MS, d->deadline_ns);
    int64_t longest_ms = hf__zk_negotiate(d->zk, HF_TTL_MAX_MS + HF_DELAY_MAX_MS, d->deadline_ns);

    if (shortest_ms == 0 || longest_ms == 0)
        return;
    tell(d, 0, "C3", "sessions last from %lld ms to %lld ms", (long long)shortest_ms,
         (long long)longest_ms);
    if (longest_ms < HF_TTL_DEFAULT_MS)
        tell(d, 3, "C3", "the default ttl of %d ms is refused: raise maxSessionTimeout",
             HF_TTL_DEFAULT_MS);
    else
        tell(d, 1, "C8", "ttl and lock-delay together may be %lld ms at most",
             (long long)longest_ms);
    if (shortest_ms > 1000)
        tell(d, 1, "C3", "a dead holder is missed after %lld ms at the earliest",
             (long long)shortest_ms);
}

static void tell_latency(const struct doctor *d, struct session *s)
{
    const struct hf_env *env = d->zk->base.host->env;
    char path[HF__ZK_PATH_MAX];
    int64_t sum_us = 0;
    int rounds = 5;

    snprintf(path, sizeof path, "%s/%s", d->zk->prefix, HF__ZK_MARKS);
    int rc = hf__zk_make_directory(s, path, d->deadline_ns);
    for (int i = 0; rc == ZOK && i < rounds; i++) {
        zoo_op_t op;
        struct call *call = hf__zk_call_new();
        int64_t began_ns = hf__now_ns(env);
        if (call == NULL)
            return;
        zoo_check_op_init(&op, path, -1);
        rc = hf__zk_multi(s, &op, 1, d->deadline_ns, call);
        sum_us += (hf__now_ns(env) - began_ns) / 1000;
        hf__zk_call_free(call);
    }
    if (rc == ZOK)
        tell(d, 0, NULL, "a write takes %lld us", (long long)(sum_us / rounds));
    else
        tell(d, 3, NULL, "a write is refused: %s", zerror(rc));
}

int hf__zk_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                    int64_t deadline_ns, hf_error *err)
{
    struct doctor d = {
        .zk = (struct zk *)store, .found = found, .arg = arg, .deadline_ns = deadline_ns};
    struct session *s;

    tell_servers(&d);
    int r = hf__zk_any_session(d.zk, deadline_ns, &s, err);
    if (r != 0)
        return r;
    tell_latency(&d, s);
    hf__zk_unuse(s);
    tell_sessions(&d);
    if (d.zk->acl == &ZOO_CREATOR_ALL_ACL)
        tell(&d, 0, NULL, "nodes belong to their creator: only this user may read or delete them");
    else
        tell(&d, 2, NULL,
             "nodes belong to the world: whoever reaches the servers may break any "
             "lock; give a user and a password in the URL");
    if (!d.zk->fair)
        tell(&d, 1, "C5", "fair=no: no queue, and each release wakes all who wait");
    return 0;
}
