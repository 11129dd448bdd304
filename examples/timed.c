/* Trying without waiting, waiting for a limited time, and telling "no" from "it failed".
 *
 *     ./timed [URL]
 *
 * A bid that times out leaves nothing behind: it will not be granted later. */
#include <holdfast.h>
#include <stdio.h>

/* 0: we have it. 1: somebody else has it. -1: an error, told on stderr. */
static int take(hf_client *client, int64_t wait_ms, hf_lock **ret_lock)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_error err;

    opt.wait_ms = wait_ms;
    opt.note = "examples/timed.c";
    switch (hf_acquire(client, "report", HF_NTS, &opt, ret_lock, &err)) {
    case HF_OK:
        return 0;
    case HF_BUSY:    /* wait_ms was 0 */
    case HF_TIMEOUT: /* it was not */
        return 1;
    case HF_UNKNOWN: /* the store went away: it may be ours for this long, without our knowing */
        fprintf(stderr, "%s (for %lld ms)\n", err.text, (long long)err.may_hold_ms);
        return -1;
    default:
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : NULL;
    hf_client *mine, *theirs; /* two clients, as two programs would be */
    hf_lock *lock = NULL, *second = NULL;
    hf_error err;

    if (hf_open(url, NULL, &mine, &err) != HF_OK || hf_open(url, NULL, &theirs, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int first = take(mine, 0, &lock);
    int at_once = take(theirs, 0, &second);
    int in_time = take(theirs, 200, &second);
    printf("first %d, at once %d, within 200 ms %d\n", first, at_once, in_time);

    hf_lock_release(lock, NULL);
    int after = take(theirs, 200, &second);
    printf("after the release %d\n", after);
    hf_lock_release(second, NULL);
    hf_close(theirs);
    hf_close(mine);
    return first == 0 && at_once == 1 && in_time == 1 && after == 0 ? 0 : 1;
}
