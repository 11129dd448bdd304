/* See nodes.h. */
#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/check.h"

#define TRIES 1000 /* of 10 ms each */

static struct node {
    pid_t pid;
    int port;
    char dir[200];
    bool frozen, dead, ours; /* ours: this process has started it */
} nodes[NODES];

static char list[200];

bool nodes_find(void)
{
    const char *hosts = getenv("HOLDFAST_TEST_REDLOCK");
    const char *pids = getenv("HOLDFAST_TEST_REDLOCK_PIDS");
    const char *dirs = getenv("HOLDFAST_TEST_REDLOCK_DIRS");

    if (hosts == NULL || pids == NULL || dirs == NULL)
        return false;
    snprintf(list, sizeof list, "%s", hosts);
    for (size_t i = 0; i < NODES; i++) {
        int used = 0;
        char *end;
        nodes[i].port = (int)strtol(strchr(hosts, ':') + 1, (char **)&hosts, 10);
        nodes[i].pid = (pid_t)strtol(pids, &end, 10);
        pids = end;
        if (sscanf(dirs, " %199s%n", nodes[i].dir, &used) != 1)
            return false;
        dirs += used;
    }
    return true;
}

const char *nodes_list(void)
{
    return list;
}

static char state_of(pid_t pid)
{
    char path[64], state = 'Z';
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return 'Z';
    if (fscanf(file, "%*d %*s %c", &state) != 1)
        state = 'Z';
    fclose(file);
    return state;
}

static void await_state(const struct node *node, const char *states)
{
    for (int i = 0; i < TRIES && strchr(states, state_of(node->pid)) == NULL; i++)
        poll(NULL, 0, 10);
    assert_non_null(strchr(states, state_of(node->pid)));
}

void node_freeze(size_t i)
{
    assert_int_equal(kill(nodes[i].pid, SIGSTOP), 0);
    await_state(&nodes[i], "Tt");
    nodes[i].frozen = true;
}

void node_thaw(size_t i)
{
    assert_int_equal(kill(nodes[i].pid, SIGCONT), 0);
    nodes[i].frozen = false;
}

void node_kill(size_t i)
{
    assert_int_equal(kill(nodes[i].pid, SIGKILL), 0);
    if (nodes[i].ours)
        waitpid(nodes[i].pid, NULL, 0);
    else
        await_state(&nodes[i], "Z");
    nodes[i].dead = true;
    nodes[i].frozen = false;
}

const char *node_ask(size_t i, const char *command, const char *key)
{
    static char text[20000];
    struct timeval patience = {.tv_sec = 5};
    redisContext *c = redisConnectWithTimeout("127.0.0.1", nodes[i].port, patience);
    redisReply *reply = NULL;

    text[0] = '\0';
    if (c != NULL && c->err == 0) {
        redisSetTimeout(c, patience);
        reply = key != NULL ? redisCommand(c, "%s %s", command, key) : redisCommand(c, command);
    }
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
        snprintf(text, sizeof text, "%lld", reply->integer);
    else if (reply != NULL && reply->type == REDIS_REPLY_ARRAY)
        snprintf(text, sizeof text, "(%zu)", reply->elements);
    else if (reply != NULL)
        snprintf(text, sizeof text, "%s", reply->str != NULL ? reply->str : "(nil)");
    if (reply != NULL)
        freeReplyObject(reply);
    if (c != NULL)
        redisFree(c);
    return text;
}

static void start_server(size_t i)
{
    char port[16];

    snprintf(port, sizeof port, "%d", nodes[i].port);
    nodes[i].pid = fork();
    if (nodes[i].pid == 0) {
        int nothing = open("/dev/null", O_RDWR);
        dup2(nothing, 0);
        dup2(nothing, 1);
        dup2(nothing, 2);
        execlp("redis-server", "redis-server", "--bind", "127.0.0.1", "--port", port, "--dir",
               nodes[i].dir, "--save", "", "--appendonly", "no", (char *)NULL);
        _exit(127);
    }
    nodes[i].ours = true;
    nodes[i].dead = false;
}

/* While it was dead, somebody's connection may have got its port: then it ends at once, and is
 * started again. */
void node_restart(size_t i)
{
    if (!nodes[i].dead)
        node_kill(i);
    start_server(i);
    for (int k = 0; k < TRIES && strcmp(node_ask(i, "PING", NULL), "PONG") != 0; k++) {
        poll(NULL, 0, 10);
        if (waitpid(nodes[i].pid, NULL, WNOHANG) == nodes[i].pid)
            start_server(i);
    }
    assert_string_equal(node_ask(i, "PING", NULL), "PONG");
}

void nodes_reset(void)
{
    for (size_t i = 0; i < NODES; i++) {
        if (nodes[i].frozen)
            node_thaw(i);
        if (nodes[i].dead)
            node_restart(i);
        assert_string_equal(node_ask(i, "FLUSHALL", NULL), "OK");
    }
}

void nodes_stop(void)
{
    for (size_t i = 0; i < NODES; i++) {
        if (nodes[i].ours && !nodes[i].dead)
            node_kill(i);
    }
}
