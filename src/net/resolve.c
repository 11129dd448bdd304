/* getaddrinfo() knows no deadline, so a name is looked up on a thread of its own; if that is too
 * slow nobody waits for it any more and it cleans up behind itself. getaddrinfo_a() of glibc would
 * be no help: what it has begun cannot be cancelled either, and musl does not have it.
 *
 * An address in figures needs no thread, and takes none. */
#include "net/resolve.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "net/stream.h"

#include "base/banned.h"

static const struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

/* Shared by who asks and who looks up; the second to let go frees it. It has copies of the names,
 * since who asks may have returned, and its caller freed them, long before the look-up ends. */
struct inquiry {
    pthread_mutex_t mutex;
    unsigned users;
    int done_fd, result;
    int error; /* errno, for EAI_SYSTEM: each thread has its own */
    struct addrinfo *list;
    char *host, *port;
};

static void let_go(struct inquiry *q)
{
    pthread_mutex_lock(&q->mutex);
    bool last = --q->users == 0;
    pthread_mutex_unlock(&q->mutex);
    if (!last)
        return;
    if (q->list != NULL)
        freeaddrinfo(q->list);
    if (q->done_fd >= 0)
        close(q->done_fd);
    pthread_mutex_destroy(&q->mutex);
    free(q->host);
    free(q->port);
    free(q);
}

static void *look_up(void *arg)
{
    struct inquiry *q = arg;
    struct addrinfo *list = NULL;
    int result = getaddrinfo(q->host, q->port, &wanted, &list), error = errno;

    pthread_mutex_lock(&q->mutex);
    q->result = result;
    q->error = error;
    q->list = result == 0 ? list : NULL;
    pthread_mutex_unlock(&q->mutex);
    eventfd_write(q->done_fd, 1);
    let_go(q);
    return NULL;
}

static struct inquiry *new_inquiry(const char *host, const char *port)
{
    struct inquiry *q = calloc(1, sizeof *q);

    if (q == NULL)
        return NULL;
    q->users = 1;
    pthread_mutex_init(&q->mutex, NULL);
    q->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    q->host = strdup(host);
    q->port = strdup(port);
    if (q->done_fd >= 0 && q->host != NULL && q->port != NULL)
        return q;
    let_go(q);
    return NULL;
}

static int unknown_host(const char *host, int result, int error, hf_error *err)
{
    char shown[80];

    hf__printable(host, strlen(host), shown, sizeof shown);
    return hf__fail(err, HF_UNAVAILABLE, "look up '%s': %s", shown,
                    result == EAI_SYSTEM ? strerror(error) : gai_strerror(result));
}

static int look_up_on_thread(const char *host, const char *port, const struct hf_env *env,
                             int64_t deadline_ns, struct addrinfo **ret_list, hf_error *err)
{
    struct inquiry *q = new_inquiry(host, port);
    pthread_t thread;
    int r = 0;

    if (q == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    q->users++; /* before it runs: it may be through before we are told that it has started */
    if (hf__thread_start(&thread, "hf-resolver", 0, look_up, q) != 0) {
        q->users--;
        let_go(q);
        return hf__fail(err, HF_SYSTEM, "no thread can be started to look up a name");
    }
    pthread_detach(thread); /* nobody can join one that hangs in a name server's time-outs */
    if (hf__wait_fd(q->done_fd, POLLIN, env, deadline_ns) != 0) {
        r = hf__fail(err, HF_UNAVAILABLE, "look up the host: no answer in time");
    } else {
        pthread_mutex_lock(&q->mutex);
        if (q->result != 0)
            r = unknown_host(host, q->result, q->error, err);
        *ret_list = r == 0 ? q->list : NULL;
        q->list = NULL;
        pthread_mutex_unlock(&q->mutex);
    }
    let_go(q);
    return r;
}

int hf__resolve(const char *host, const char *port, const struct hf_env *env, int64_t deadline_ns,
                struct addrinfo **ret_list, hf_error *err)
{
    struct addrinfo figures = wanted;

    figures.ai_flags = AI_NUMERICHOST;
    int result = getaddrinfo(host, port, &figures, ret_list);
    if (result == 0)
        return 0;
    if (result != EAI_NONAME) /* which says: a name. All else: something is wrong */
        return unknown_host(host, result, errno, err);
    return look_up_on_thread(host, port, env, deadline_ns, ret_list, err);
}
