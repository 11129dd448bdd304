/* What belongs to this process and not to a forked child: that the client may be used here, and
 * random bits for tickets.
 *
 * Both are asked for on every acquire, and a system call for each (getpid, getrandom) costs more
 * than the rest of the client's own work. So they are kept in a page that the kernel empties in a
 * forked child (MADV_WIPEONFORK, Linux 4.14). Without it there is no page, and the kernel is asked
 * each time. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/client.h"
#include "util/banned.h"

#define SPARE 63 /* tickets drawn at once, besides the one that is used */

struct hf__own {
    bool here; /* false in a forked child, as everything here */
    size_t left;
    struct hf__ticket spare[SPARE];
};

void hf__own_init(hf_client *client)
{
    struct hf__own *own =
        mmap(NULL, sizeof *own, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    client->pid = getpid();
    if (own == MAP_FAILED)
        return;
    if (madvise(own, sizeof *own, MADV_WIPEONFORK) < 0) {
        munmap(own, sizeof *own);
        return;
    }
    own->here = true;
    client->own = own;
}

void hf__own_clear(hf_client *client)
{
    if (client->own == NULL)
        return;
    explicit_bzero(client->own, sizeof *client->own);
    munmap(client->own, sizeof *client->own);
}

bool hf__is_forked(const hf_client *client)
{
    return client->own != NULL ? !client->own->here : client->pid != getpid();
}

static bool take_spare(hf_client *client, struct hf__ticket *ret_ticket)
{
    struct hf__own *own = client->own;

    hf__lock_client(client);
    bool found = own->left > 0;
    if (found) {
        *ret_ticket = own->spare[--own->left];
        memset(&own->spare[own->left], 0, sizeof own->spare[0]);
    }
    hf__unlock_client(client);
    return found;
}

int hf__draw_ticket(hf_client *client, struct hf__ticket *ret_ticket)
{
    const struct hf_env *env = client->env;
    struct hf__ticket fresh[1 + SPARE];

    if (client->own == NULL)
        return env->random(env->ctx, ret_ticket, sizeof *ret_ticket);
    if (take_spare(client, ret_ticket))
        return 0;
    int r = env->random(env->ctx, fresh, sizeof fresh);
    if (r < 0)
        return r;
    hf__lock_client(client);
    memcpy(client->own->spare, fresh + 1, sizeof client->own->spare);
    client->own->left = SPARE;
    hf__unlock_client(client);
    *ret_ticket = fresh[0];
    explicit_bzero(fresh, sizeof fresh);
    return 0;
}
