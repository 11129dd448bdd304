/* See fork_guard.h.
 *
 * Both are asked for on every acquire, and a system call for each (getpid, getrandom) costs more
 * than the rest of the client's own work. So they are kept in a page that the kernel empties in a
 * forked child (MADV_WIPEONFORK, Linux 4.14). Without it there is no page, and the kernel is asked
 * each time. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core_client.h"

#include "base_banned.h"

#define SPARE 63 /* tickets drawn at once, besides the one that is used */

struct hf__fork_guard {
    bool here; /* false in a forked child, as everything here */
    size_t left;
    struct hf__ticket spare[SPARE];
};

void hf__fork_guard_init(hf_client *client)
{
    struct hf__fork_guard *guard =
        mmap(NULL, sizeof *guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    client->pid = getpid();
    if (guard == MAP_FAILED)
        return;
    if (madvise(guard, sizeof *guard, MADV_WIPEONFORK) < 0) {
        munmap(guard, sizeof *guard);
        return;
    }
    guard->here = true;
    client->fork_guard = guard;
}

void hf__fork_guard_clear(hf_client *client)
{
    if (client->fork_guard == NULL)
        return;
    explicit_bzero(client->fork_guard, sizeof *client->fork_guard);
    munmap(client->fork_guard, sizeof *client->fork_guard);
}

bool hf__is_forked(const hf_client *client)
{
    return client->fork_guard != NULL ? !client->fork_guard->here : client->pid != getpid();
}

int hf__draw_ticket(hf_client *client, struct hf__ticket *ret_ticket)
{
    const struct hf_env *env = client->env;
    struct hf__fork_guard *guard = client->fork_guard;
    struct hf__ticket fresh[1 + SPARE];

    if (guard != NULL && guard->left > 0) {
        *ret_ticket = guard->spare[--guard->left];
        memset(&guard->spare[guard->left], 0, sizeof guard->spare[0]);
        return 0;
    }
    hf__unlock_client(client);
    int r = env->random(env->ctx, fresh, guard != NULL ? sizeof fresh : sizeof fresh[0]);
    hf__lock_client(client);
    if (r == 0 && guard != NULL) {
        memcpy(guard->spare, fresh + 1, sizeof guard->spare);
        guard->left = SPARE;
    }
    if (r == 0)
        *ret_ticket = fresh[0];
    explicit_bzero(fresh, sizeof fresh);
    return r;
}
