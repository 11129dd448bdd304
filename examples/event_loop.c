/* A watchdog in a poll loop: work goes on in steps, and stops at once when the lock is lost.
 *
 *     ./event_loop [URL]
 *
 * hf_lock_fd() becomes readable when the lock is lost, by the local timer, before its lease can be
 * given to anybody else. Before a step that cannot be undone, ask hf_lock_remaining_ms() too. To
 * have something to see, an operator breaks our lock; with `now` that is told on the next
 * renewal. */
#include <holdfast.h>
#include <poll.h>
#include <stdio.h>

/* What an operator does with `holdfast break`. */
static void break_it(const char *url, const char *ticket)
{
    hf_client *operator;
    if (hf_open(url, NULL, &operator, NULL) == HF_OK) {
        hf_break(operator, "shard/7", HF_NTS, ticket, 1, NULL);
        hf_close(operator);
    }
}

static int run_steps(const char *url, hf_lock *lock)
{
    struct pollfd fds[] = {{.fd = hf_lock_fd(lock), .events = POLLIN}}; /* and your own */
    if (fds[0].fd < 0)
        return 1;
    for (int step = 1; step <= 500; step++) {
        if (poll(fds, 1, 10) > 0) {
            printf("lost: %s; stopped before step %d\n", hf_cause_text(hf_lock_cause(lock)), step);
            return 0;
        }
        if (step == 3)
            break_it(url, hf_lock_ticket(lock));
    }
    fprintf(stderr, "the loss was not told\n");
    return 1;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : NULL;
    hf_options opt = HF_OPTIONS_INIT;
    hf_client *client;
    hf_lock *lock;
    hf_error err;

    opt.ttl_ms = 1000; /* renewed every third of it */
    if (hf_open(url, NULL, &client, &err) != HF_OK ||
        hf_acquire(client, "shard/7", HF_NTS, &opt, &lock, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int status = run_steps(url, lock);
    if (hf_lock_release(lock, &err) != HF_STALE) /* it is no longer ours */
        status = 1;
    hf_close(client);
    return status;
}
