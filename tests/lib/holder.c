/* holder URL: holds locks while somebody else changes servers under it, one step a line of its standard input.
 *   take NAME [TTL]  takes it, and says its token; the ttl is in ms
 *   lost NAME        waits until it is told that it is lost
 *   held NAME        renews it
 *   free NAME        releases it
 * Each step is answered by a line, "ok ..." or what went wrong. Nothing is asked of the store in between, except what
 * the client does by itself; without a ttl the lease is too long for a renewal. */
#include <holdfast.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define LOCKS_MAX 8
#define TTL_MS    600000
#define AWAIT_MS  20000 /* far less than the first renewal is away */

struct held {
    char name[40];
    hf_lock *lock;
};

static int take(hf_client *client, struct held *held, const char *name, int64_t ttl_ms,
                hf_error *err)
{
    hf_options opt = HF_OPTIONS_INIT;
    static uint64_t owner = 1;

    opt.ttl_ms = ttl_ms;
    opt.wait_ms = AWAIT_MS;
    opt.owner = owner++;
    int r = hf_acquire(client, name, HF_NTS, &opt, &held->lock, err);
    snprintf(held->name, sizeof held->name, "%s", r == 0 ? name : "");
    return r;
}

static int step(hf_client *client, struct held *held, const char *what, const char *name,
                int64_t ttl_ms, hf_error *err)
{
    if (strcmp(what, "take") == 0)
        return take(client, held, name, ttl_ms, err);
    if (strcmp(what, "held") == 0)
        return hf_lock_renew(held->lock, err);
    if (strcmp(what, "free") == 0) {
        held->name[0] = '\0';
        return hf_lock_release(held->lock, err);
    }
    struct pollfd fd = {.fd = hf_lock_fd(held->lock), .events = POLLIN};
    return poll(&fd, 1, AWAIT_MS) == 1 && hf_lock_state(held->lock) == HF_STATE_LOST ? 0 : HF_BUSY;
}

static struct held *find(struct held *all, const char *name)
{
    for (size_t i = 0; i < LOCKS_MAX; i++) {
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct held all[LOCKS_MAX] = {0};
    char line[80], what[10], name[40];
    hf_client *client;
    hf_error err;

    if (argc != 2 || hf_open(argv[1], NULL, &client, &err) != 0)
        return 2;
    while (fgets(line, sizeof line, stdin) != NULL) {
        int64_t ttl_ms = TTL_MS;
        if (sscanf(line, "%9s %39s %" SCNd64, what, name, &ttl_ms) < 2)
            break;
        struct held *held = find(all, strcmp(what, "take") == 0 ? "" : name);
        snprintf(err.text, sizeof err.text, "%s", what);
        uint64_t generation = 0;
        int r = held != NULL ? step(client, held, what, name, ttl_ms, &err) : HF_NOT_FOUND;
        if (r == 0 && held->name[0] != '\0')
            hf_lock_generation(held->lock, &generation);
        if (r == 0)
            printf("ok %" PRIu64 "\n", generation);
        else
            printf("failed: %s\n", err.text);
        fflush(stdout);
    }
    hf_close(client);
    return 0;
}
