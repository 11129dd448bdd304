/* One at a time, with a fencing token.
 *
 *     cc mutex.c $(pkg-config --cflags --libs holdfast) -o mutex
 *     ./mutex [URL]
 *
 * The lease is renewed in the background while we work. Should this process be frozen past its
 * lease, somebody else may enter before we notice; so we hand the token to the resource with every
 * write, and the resource refuses any that is smaller than one it has seen (see gate.c). */
#include <holdfast.h>
#include <inttypes.h>
#include <stdio.h>

/* Stands for a database or a service: it remembers the highest token and refuses older ones. */
static int write_invoice(int number, uint64_t token)
{
    static uint64_t highest;
    if (token < highest)
        return -1;
    highest = token;
    printf("invoice %d written under token %" PRIu64 "\n", number, token);
    return 0;
}

static int work(hf_lock *lock)
{
    uint64_t token;
    int code = hf_lock_generation(lock, &token);
    if (code != HF_OK) {
        fprintf(stderr, "no token: %s\n", hf_code_text(code));
        return 1;
    }
    return write_invoice(123, token) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    hf_client *client;
    hf_lock *lock;
    hf_error err;
    int status = 1;

    if (hf_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (hf_acquire(client, "invoice/123", HF_NTS, NULL, &lock, &err) == HF_OK) {
        status = work(lock);
        if (hf_lock_release(lock, &err) != HF_OK) {
            fprintf(stderr, "%s\n", err.text); /* HF_STALE: it had been lost before */
            status = 1;
        }
    } else {
        fprintf(stderr, "%s\n", err.text);
    }
    hf_close(client);
    return status;
}
