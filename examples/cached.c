/* A lock that many short turns take: it stays here between them, until somebody else wants it.
 *
 *     ./cached [URL]
 *
 * The first acquire and the last release ask the store; those between are local, and take less than a
 * microsecond. Each turn still has a higher token. Another program gets the lock as soon as we are not
 * at work with it, and is served before our next turn. */
#include <holdfast.h>
#include <inttypes.h>
#include <stdio.h>

#define TURNS 1000

/* One turn. 0, or the error that was printed; *last is its token, above that of the turn before. */
static int take_turn(hf_client *client, uint64_t *last)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;
    hf_error err;
    uint64_t token;

    opt.cached = 1;
    opt.ttl_ms = HF_TTL_CACHED_MS; /* what a crash costs the others, in use or not */
    int r = hf_acquire(client, "counter", HF_NTS, &opt, &lock, &err);
    if (r != HF_OK)
        return fprintf(stderr, "%s\n", err.text), r;
    r = hf_lock_generation(lock, &token);
    if (r == HF_OK && token <= *last)
        r = HF_STALE; /* a resource that checks tokens would refuse us */
    *last = token;
    int released = hf_lock_release(lock, &err);
    return r != HF_OK ? r : released;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : NULL;
    hf_client *mine, *theirs; /* two clients, as two programs would be */
    hf_error err;
    uint64_t last = 0;
    int r = HF_OK;

    if (hf_open(url, NULL, &mine, &err) != HF_OK || hf_open(url, NULL, &theirs, &err) != HF_OK)
        return fprintf(stderr, "%s\n", err.text), 1;
    for (int i = 0; i < TURNS && r == HF_OK; i++)
        r = take_turn(mine, &last);
    printf("%d turns, the last with token %" PRIu64 "\n", TURNS, last);
    if (r == HF_OK)
        r = take_turn(theirs, &last); /* the store asks us for it */
    printf("the other program: token %" PRIu64 "\n", last);
    hf_close(theirs);
    hf_close(mine);
    return r == HF_OK ? 0 : 1;
}
