/* The doctor's look at the servers: each is asked `srvr`, the one four-letter word that is answered
 * by default, and the ensemble's own list is read from /zookeeper/config. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/stream.h"
#include "stores/zookeeper/doctor.h"
#include "util/banned.h"

#define PATIENCE_NS (1000 * HF__NS_PER_MS) /* with one server */

/* The bugs that can keep a dead holder's node or lose a live one's: the releases from `first` until
 * before `fixed` of a line have it. */
static const struct bug {
    int major, minor, first, fixed;
    const char *text;
} bugs[] = {
    {3, 4, 0, 3, "ZOOKEEPER-1367: nodes of dead sessions after a restart of the ensemble"},
    {3, 4, 0, 4, "ZOOKEEPER-1496: the node of a dead client may stay"},
    {3, 4, 0, 11, "ZOOKEEPER-2355: the node of a dead session may stay on a follower"},
    {3, 5, 0, 4, "ZOOKEEPER-2355: the node of a dead session may stay on a follower"},
    {3, 5, 0, 10, "ZOOKEEPER-3642: servers may differ after a leader crashed while sending SNAP"},
    {3, 5, 0, 10, "ZOOKEEPER-3911: after a change of the leader servers may differ for good"},
    {3, 6, 0, 3, "ZOOKEEPER-3911: after a change of the leader servers may differ for good"},
    {3, 8, 0, 5, "ZOOKEEPER-4785: a follower that crashes after a DIFF sync may lose nodes"},
    {3, 9, 0, 2, "ZOOKEEPER-4785: a follower that crashes after a DIFF sync may lose nodes"},
    {3, 9, 0, 3,
     "ZOOKEEPER-4712: a follower that shuts down may differ from the others afterwards"},
    {3, 9, 3, 4, "ZOOKEEPER-4925: a follower that lagged behind may lose nodes as the new leader"},
};

void hf__zk_tell_bugs(const struct doctor *d, const char *host, const char *version)
{
    int major = 0, minor = 0, patch = 0;

    if (sscanf(version, "%d.%d.%d", &major, &minor, &patch) != 3)
        return;
    for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
        const struct bug *b = &bugs[i];
        if (b->major == major && b->minor == minor && patch >= b->first && patch < b->fixed)
            hf__zk_tell(d, HF__ZK_WARNING, "C1", "%s runs %d.%d.%d: %s; %d.%d.%d has it mended",
                        host, major, minor, patch, b->text, major, minor, b->fixed);
    }
}

/* `host` is "name:port". */
static bool ask_server(const struct doctor *d, const char *host, char *buf, size_t size)
{
    const struct hf_env *env = d->zk->base.host->env;
    const char *colon = strrchr(host, ':');
    bool bracketed = host[0] == '[';
    char name[256];
    struct hf__stream stream;
    size_t used = 0, count = 0;
    int64_t deadline_ns = hf__now_ns(env) + PATIENCE_NS;

    snprintf(name, sizeof name, "%.*s", (int)(colon - host) - 2 * bracketed, host + bracketed);
    struct hf__address to = {.host = name, .port = colon + 1};
    if (deadline_ns > d->deadline_ns)
        deadline_ns = d->deadline_ns;
    if (hf__stream_connect(&stream, &to, env, deadline_ns, NULL) != 0)
        return false;
    if (hf__stream_write(&stream, "srvr", 4, deadline_ns, NULL, NULL) == 0) {
        while (used + 1 < size && hf__stream_read(&stream, buf + used, size - 1 - used, deadline_ns,
                                                  &count, NULL) == 0)
            used += count;
    }
    hf__stream_close(&stream);
    buf[used] = '\0';
    return used > 0;
}

struct count {
    unsigned named, answered, leaders;
};

static void tell_server(const struct doctor *d, const char *host, struct count *c)
{
    char answer[4096], version[40] = "?", mode[40] = "?";

    c->named++;
    if (!ask_server(d, host, answer, sizeof answer)) {
        hf__zk_tell(d, HF__ZK_WARNING, NULL, "%s does not answer", host);
        return;
    }
    const char *at = strstr(answer, "version: ");
    if (at != NULL)
        snprintf(version, sizeof version, "%.*s", (int)strcspn(at + 9, ",-\n"), at + 9);
    at = strstr(answer, "Mode: ");
    if (at == NULL) {
        hf__zk_tell(d, HF__ZK_NOTE, NULL, "%s answers, but not to srvr: %.*s", host,
                    (int)strcspn(answer, "\n"), answer);
        return;
    }
    snprintf(mode, sizeof mode, "%.*s", (int)strcspn(at + 6, "\n"), at + 6);
    c->answered++;
    c->leaders += strcmp(mode, "leader") == 0 || strcmp(mode, "standalone") == 0;
    hf__zk_tell(d, HF__ZK_FINE, NULL, "%s is a %s, version %s", host, mode, version);
    hf__zk_tell_bugs(d, host, version);
}

void hf__zk_tell_servers(const struct doctor *d)
{
    char *hosts = strdup(d->zk->hosts), *save = NULL;
    struct count c = {0};

    for (char *host = hosts != NULL ? strtok_r(hosts, ",", &save) : NULL; host != NULL;
         host = strtok_r(NULL, ",", &save))
        tell_server(d, host, &c);
    free(hosts);
    if (c.answered > 0 && c.leaders == 0)
        hf__zk_tell(d, HF__ZK_WARNING, "C1",
                    "no server of the list leads: the leader is not in the URL, or there is none "
                    "and locks cannot be taken");
    if (c.named == 1)
        hf__zk_tell(d, HF__ZK_NOTE, NULL,
                    "the URL names one server: if it is down, no lock can be taken or kept");
}

/* Lines of "server.1=host:port:port:participant"; a server that stands alone has none. */
void hf__zk_tell_ensemble(const struct doctor *d, struct session *s)
{
    struct call *node = hf__zk_call_new();
    unsigned members = 0, named = 1;

    if (node != NULL && hf__zk_get(s, "/zookeeper/config", d->deadline_ns, node) == ZOK) {
        for (const char *at = node->text; (at = strstr(at, "server.")) != NULL; at++)
            members += (at == node->text || at[-1] == '\n');
    }
    hf__zk_call_free(node);
    for (const char *c = d->zk->hosts; *c != '\0'; c++)
        named += *c == ',';
    if (members > 0)
        hf__zk_tell(d, HF__ZK_FINE, NULL, "the ensemble has %u members", members);
    if (members > named)
        hf__zk_tell(d, HF__ZK_NOTE, NULL, "the URL names %u of %u members: name them all", named,
                    members);
    if (members > 0 && members % 2 == 0)
        hf__zk_tell(d, HF__ZK_NOTE, NULL, "%u members bear no more failures than %u", members,
                    members - 1);
}
