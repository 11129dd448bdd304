/* Why there is no session: the client library does not tell, so a server is dialled once more, and asked
 * `srvr`, the one four-letter word that is answered by default. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/stream.h"
#include "stores/zookeeper/zk.h"

#include "base/banned.h"

static int dial(const struct hf__zk *zk, const char *host, int64_t deadline_ns,
                struct hf__stream *ret_stream, hf_error *err)
{
    const char *colon = strrchr(host, ':');
    bool bracketed = host[0] == '[';
    char name[256];

    snprintf(name, sizeof name, "%.*s", (int)(colon - host) - 2 * bracketed, host + bracketed);
    struct hf__address to = {.host = name, .port = colon + 1};
    return hf__stream_connect(ret_stream, &to, zk->base.host->env, deadline_ns, err);
}

enum hf__zk_probed hf__zk_probe(const struct hf__zk *zk, const char *host, int64_t deadline_ns,
                                char *buf, size_t size)
{
    struct hf__stream stream;
    size_t used = 0, count = 0;
    hf_error err = {0};

    buf[0] = '\0';
    if (dial(zk, host, deadline_ns, &stream, &err) != 0) {
        /* A server with too many connections takes another one and ends it. */
        bool closed = err.store_code == EPIPE || err.store_code == ECONNRESET; /* already */
        return closed ? HF__ZK_PROBED_CLOSES : HF__ZK_PROBED_UNREACHABLE;
    }
    if (hf__stream_write(&stream, "srvr", 4, deadline_ns, NULL, NULL) == 0) {
        while (used + 1 < size && hf__stream_read(&stream, buf + used, size - 1 - used, deadline_ns,
                                                  &count, NULL) == 0)
            used += count;
    }
    hf__stream_close(&stream);
    buf[used] = '\0';
    if (used > 0)
        return HF__ZK_PROBED_ANSWERS;
    return hf__now_ns(zk->base.host->env) < deadline_ns ? HF__ZK_PROBED_CLOSES
                                                        : HF__ZK_PROBED_UNREACHABLE;
}

/* One that takes the connection may still be of no use, but it is there: the library is left to try. */
bool hf__zk_all_refuse(const struct hf__zk *zk, int64_t deadline_ns)
{
    char *hosts = strdup(zk->hosts), *save = NULL;
    bool refused = hosts != NULL;

    for (char *host = refused ? strtok_r(hosts, ",", &save) : NULL; refused && host != NULL;
         host = strtok_r(NULL, ",", &save)) {
        struct hf__stream stream;
        hf_error err = {0};
        int r = dial(zk, host, deadline_ns, &stream, &err);
        refused = r != 0 && err.store_code == ECONNREFUSED;
        if (r == 0)
            hf__stream_close(&stream);
    }
    free(hosts);
    return refused;
}

int hf__zk_fail_to_connect(const struct hf__zk *zk, int64_t deadline_ns, hf_error *err)
{
    char answer[200], *hosts = strdup(zk->hosts), *save = NULL;
    bool closes = false, answers = false;

    for (char *host = hosts != NULL ? strtok_r(hosts, ",", &save) : NULL;
         host != NULL && !answers && hf__now_ns(zk->base.host->env) < deadline_ns;
         host = strtok_r(NULL, ",", &save)) {
        enum hf__zk_probed what = hf__zk_probe(zk, host, deadline_ns, answer, sizeof answer);
        closes |= what == HF__ZK_PROBED_CLOSES;
        answers |= what == HF__ZK_PROBED_ANSWERS;
    }
    free(hosts);
    if (closes && !answers)
        return hf__fail(
            err, HF_UNAVAILABLE,
            "a server of %s closes new connections at once: this machine has as many as "
            "its maxClientCnxns allows, 60 by default; 'holdfast doctor' tells more",
            zk->hosts);
    return hf__fail(err, HF_UNAVAILABLE, "no server of %s has answered", zk->hosts);
}
