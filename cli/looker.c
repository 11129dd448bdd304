/* See looker.h. */
#include "looker.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/env.h"
#include "base/thread.h"
#include "cli.h"

#include "base/banned.h"

static void *run(void *arg)
{
    struct looker *looker = arg;
    eventfd_t count;

    while (eventfd_read(looker->ask_fd, &count) == 0 || errno == EINTR) {
        int64_t began_ns = hf__now_ns(&hf__system_env);
        looker->view = NULL;
        looker->err = (hf_error){0};
        hf_inspect(looker->client, looker->query, &looker->view, &looker->err);
        looker->took_ms = (hf__now_ns(&hf__system_env) - began_ns) / HF__NS_PER_MS;
        eventfd_write(looker->found_fd, 1);
    }
    return NULL;
}

bool looker_start(struct looker *looker, hf_client *client, const hf_query *query)
{
    pthread_t thread;

    *looker = (struct looker){.client = client, .query = query};
    looker->ask_fd = eventfd(0, EFD_CLOEXEC);
    looker->found_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (looker->ask_fd < 0 || looker->found_fd < 0 ||
        hf__thread_start(&thread, "looker", 0, run, looker) < 0) {
        cli_fail(EXIT_MACHINE, "cannot start a thread: %s", strerror(errno));
        return false;
    }
    pthread_detach(thread);
    return true;
}

void looker_ask(struct looker *looker)
{
    looker->busy = true;
    eventfd_write(looker->ask_fd, 1);
}

bool looker_has_found(struct looker *looker)
{
    eventfd_t count;

    if (eventfd_read(looker->found_fd, &count) < 0)
        return false;
    looker->busy = false;
    return true;
}
