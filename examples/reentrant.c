/* A function that takes the lock and calls another that takes it too.
 *
 *     ./reentrant [URL]
 *
 * Opt-in on every acquire. The owner is the calling thread, or a key of your own where work moves
 * between threads. Re-entering a lock that was lost fails with HF_LOST. */
#include <holdfast.h>
#include <stdio.h>

static int with_account(hf_client *client, int depth)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;
    hf_error err;

    opt.reentrant = 1;
    if (hf_acquire(client, "account/9", HF_NTS, &opt, &lock, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("inside, depth %d\n", depth);
    int status = depth < 3 ? with_account(client, depth + 1) : 0;
    if (hf_lock_release(lock, &err) != HF_OK) { /* given back by the outermost */
        fprintf(stderr, "%s\n", err.text);
        status = 1;
    }
    return status;
}

/* Without the option the second acquire says so, instead of waiting for itself. */
static int ask_twice(hf_client *client)
{
    hf_lock *lock, *again;
    hf_error err;

    if (hf_acquire(client, "account/9", HF_NTS, NULL, &lock, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int code = hf_acquire(client, "account/9", HF_NTS, NULL, &again, &err);
    printf("twice without it: %s\n", hf_code_name(code));
    hf_lock_release(lock, NULL);
    return code == HF_DEADLOCK ? 0 : 1;
}

int main(int argc, char **argv)
{
    hf_client *client;
    hf_error err;

    if (hf_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int status = with_account(client, 1) || ask_twice(client);
    hf_close(client);
    return status;
}
