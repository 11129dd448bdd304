/* What the benchmarks on Redis share. A server is named by its address, "host:port" or the path of
 * its unix socket: the bare floor connects to it by hiredis, ours by the URL made of it. */
#ifndef BENCH_REDIS_H
#define BENCH_REDIS_H

#include <hiredis/hiredis.h>
#include <holdfast.h>
#include <string.h>

#include "bench.h"

static inline redisContext *bench_connect(const char *address)
{
    const char *colon = strrchr(address, ':');
    char host[100];
    redisContext *redis;

    if (address[0] == '/') {
        redis = redisConnectUnix(address);
    } else {
        BENCH_MUST(colon != NULL, "'%s' is not HOST:PORT", address);
        snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
        redis = redisConnect(host, (int)strtol(colon + 1, NULL, 10));
    }
    BENCH_MUST(redis != NULL && redis->err == 0, "cannot connect to %s", address);
    return redis;
}

static inline hf_client *bench_open(const char *address)
{
    char url[300];
    hf_client *client;
    hf_error err;

    snprintf(url, sizeof url, address[0] == '/' ? "redis+unix://%s" : "redis://%s/0", address);
    BENCH_MUST(hf_open(url, NULL, &client, &err) == HF_OK, "%s", err.text);
    return client;
}

static inline redisReply *bench_reply(redisContext *redis, void *reply)
{
    redisReply *r = reply;

    BENCH_MUST(r != NULL && r->type != REDIS_REPLY_ERROR, "%s", r != NULL ? r->str : redis->errstr);
    return r;
}

/* "LABEL: what". */
static inline void bench_print_for(const char *label, const char *what, double value,
                                   const char *unit)
{
    char figure[120];
    snprintf(figure, sizeof figure, "%s: %s", label, what);
    bench_print(figure, value, unit);
}

#endif
