/* The doctor's look at the servers: each is asked for itself (probe.c), and the ensemble's own list is
 * read from /zookeeper/config. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/zookeeper/doctor.h"

#include "base/banned.h"

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

void hf__zk_tell_bugs(const struct hf__zk_doctor *d, const char *host, const char *version)
{
    int major = 0, minor = 0, patch = 0;

    if (sscanf(version, "%d.%d.%d", &major, &minor, &patch) != 3)
        return;
    for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
        const struct bug *b = &bugs[i];
        if (b->major == major && b->minor == minor && patch >= b->first && patch < b->fixed)
            hf__zk_tell(d, HF__LEVEL_WARNING, "C1", "%s runs %d.%d.%d: %s; %d.%d.%d has it mended",
                        host, major, minor, patch, b->text, major, minor, b->fixed);
    }
}

struct count {
    unsigned named, answered, leaders;
};

static void tell_server(const struct hf__zk_doctor *d, const char *host, struct count *c)
{
    char answer[4096], version[40] = "?", mode[40] = "?";

    int64_t deadline_ns = hf__now_ns(d->zk->base.host->env) + PATIENCE_NS;
    if (deadline_ns > d->deadline_ns)
        deadline_ns = d->deadline_ns;
    c->named++;
    enum hf__zk_probed probed = hf__zk_probe(d->zk, host, deadline_ns, answer, sizeof answer);
    if (probed == HF__ZK_PROBED_CLOSES)
        hf__zk_tell(d, HF__LEVEL_WARNING, NULL,
                    "%s closes connections at once: this machine has as many as its maxClientCnxns "
                    "allows (60 by default); each waiting process needs one, each holding one that "
                    "waited two",
                    host);
    else if (probed == HF__ZK_PROBED_UNREACHABLE)
        hf__zk_tell(d, HF__LEVEL_WARNING, NULL, "%s does not answer", host);
    if (probed != HF__ZK_PROBED_ANSWERS)
        return;
    const char *at = strstr(answer, "version: ");
    if (at != NULL)
        snprintf(version, sizeof version, "%.*s", (int)strcspn(at + 9, ",-\n"), at + 9);
    at = strstr(answer, "Mode: ");
    if (at == NULL) {
        hf__zk_tell(d, HF__LEVEL_NOTE, NULL, "%s answers, but not to srvr: %.*s", host,
                    (int)strcspn(answer, "\n"), answer);
        return;
    }
    snprintf(mode, sizeof mode, "%.*s", (int)strcspn(at + 6, "\n"), at + 6);
    c->answered++;
    c->leaders += strcmp(mode, "leader") == 0 || strcmp(mode, "standalone") == 0;
    hf__zk_tell(d, HF__LEVEL_FINE, NULL, "%s is a %s, version %s", host, mode, version);
    hf__zk_tell_bugs(d, host, version);
}

void hf__zk_tell_servers(const struct hf__zk_doctor *d)
{
    char *hosts = strdup(d->zk->hosts), *save = NULL;
    struct count c = {0};

    for (char *host = hosts != NULL ? strtok_r(hosts, ",", &save) : NULL; host != NULL;
         host = strtok_r(NULL, ",", &save))
        tell_server(d, host, &c);
    free(hosts);
    if (c.answered > 0 && c.leaders == 0)
        hf__zk_tell(d, HF__LEVEL_WARNING, "C1",
                    "no server of the list leads: the leader is not in the URL, or there is none "
                    "and locks cannot be taken");
    if (c.named == 1)
        hf__zk_tell(d, HF__LEVEL_NOTE, NULL,
                    "the URL names one server: if it is down, no lock can be taken or kept");
}

/* Lines of "server.1=host:port:port:participant"; a server that stands alone has none. */
void hf__zk_tell_ensemble(const struct hf__zk_doctor *d, struct hf__zk_session *s)
{
    struct hf__zk_call *node = hf__zk_call_new();
    unsigned members = 0, named = 1;

    if (node != NULL && hf__zk_get(s, "/zookeeper/config", d->deadline_ns, node) == ZOK) {
        for (const char *at = node->text; (at = strstr(at, "server.")) != NULL; at++)
            members += (at == node->text || at[-1] == '\n');
    }
    hf__zk_call_free(node);
    for (const char *c = d->zk->hosts; *c != '\0'; c++)
        named += *c == ',';
    if (members > 0)
        hf__zk_tell(d, HF__LEVEL_FINE, NULL, "the ensemble has %u members", members);
    if (members > named)
        hf__zk_tell(d, HF__LEVEL_NOTE, NULL, "the URL names %u of %u members: name them all", named,
                    members);
    if (members > 0 && members % 2 == 0)
        hf__zk_tell(d, HF__LEVEL_NOTE, NULL, "%u members bear no more failures than %u", members,
                    members - 1);
}
