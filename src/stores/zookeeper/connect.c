/* Beginning a session, and what it takes to keep the client library from touching the program it is
 * loaded into.
 *
 * To spread its clients over the servers the library shuffles their list, and for that it seeds
 * random() and drand48() of the whole process: when a session begins, and again on its own thread
 * whenever it looks for another server. It has a switch for that, one for the process. So the switch
 * is set, and the list is shuffled here. A program that is linked to the library itself keeps it as
 * it was: it may count on the library's own order, and its numbers are disturbed by it in any case.
 *
 * What is left: the library draws one number of drand48() with each session that begins, and one more
 * for each server that does not let it in then. Putting the old state back would make a program that
 * draws on another thread meanwhile draw the same numbers twice, which is worse than a gap. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "stores/zookeeper/zk.h"

#include "base/banned.h"

#define SERVERS_MAX 64 /* of which so many are shuffled */

static void say_nothing(const char *message)
{
    (void)message; /* a library does not print */
}

static bool program_has_the_library(void)
{
    void *program = dlopen(NULL, RTLD_NOW);
    bool has = program != NULL && dlsym(program, "zookeeper_init") != NULL;

    if (program != NULL)
        dlclose(program);
    return has;
}

/* "h1:1,h2:2,h3:3" in another order; NULL: no memory. */
static char *shuffle(const struct hf__zk *zk)
{
    const struct hf_env *env = zk->base.host->env;
    char *given = strdup(zk->hosts), *mixed = strdup(zk->hosts), *save = NULL;
    char *servers[SERVERS_MAX];
    size_t count = 0, used = 0, size = strlen(zk->hosts) + 1;

    if (given == NULL || mixed == NULL) {
        free(given);
        free(mixed);
        return NULL;
    }
    char *server = strtok_r(given, ",", &save);
    for (; server != NULL && count < SERVERS_MAX; server = strtok_r(NULL, ",", &save)) {
        uint32_t at = 0;
        env->random(env->ctx, &at, sizeof at);
        at %= (uint32_t)++count;
        servers[count - 1] = servers[at];
        servers[at] = server;
    }
    for (size_t i = 0; server == NULL && i < count; i++)
        used += (size_t)snprintf(mixed + used, size - used, "%s%s", i > 0 ? "," : "", servers[i]);
    free(given);
    return mixed; /* a longer list as it was given */
}

/* The threads of the library inherit our mask: signals are the program's. */
zhandle_t *hf__zk_connect(struct hf__zk_session *s, watcher_fn on_session)
{
    const struct hf__zk *zk = s->zk;
    char *hosts = shuffle(zk);
    sigset_t all, before;

    if (hosts == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    if (!program_has_the_library())
        zoo_deterministic_conn_order(1);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    zhandle_t *zh = zookeeper_init2(hosts, on_session, (int)s->asked_ms, NULL, s, 0, say_nothing);
    int why = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(hosts);
    errno = why;
    if (zh == NULL)
        return NULL;
    /* By default the library asks the name server each time it looks at its socket. */
    zoo_set_servers_resolution_delay(zh, -1);
    if (zk->credentials != NULL)
        zoo_add_auth(zh, "digest", zk->credentials, (int)strlen(zk->credentials), NULL, NULL);
    return zh;
}
