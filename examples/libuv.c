/* Many locks in a libuv loop: bids are started, and the loop is told how they end.
 *
 *     libuv memory://example        or any other URL
 *
 * A real loop has descriptors and timers of its own: it never waits for a lock. */
#define _POSIX_C_SOURCE 200809L
#include <holdfast.h>
#include <stdio.h>
#include <uv.h>

enum { BIDS = 20 };

static int released, failed;

static void on_event(const hf_event *e)
{
    if (e->kind == HF_EVENT_ACQUIRED) { /* the turn of number e->tag: work, then give it back */
        printf("bid %d: inside\n", (int)e->tag);
        hf_release_start(e->lock, e->tag, NULL);
    } else if (e->kind == HF_EVENT_RELEASED) {
        released++;
    } else if (e->kind == HF_EVENT_FAILED) {
        fprintf(stderr, "bid %d: %s\n", (int)e->tag, e->err.text);
        failed++;
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    hf_event event = {.size = sizeof event};

    (void)status, (void)events;
    while (hf_event_next(poll->data, 0, &event) == HF_OK)
        on_event(&event);
    if (released + failed == BIDS)
        uv_stop(poll->loop);
}

int main(int argc, char **argv)
{
    hf_client *client;
    hf_error err;
    uv_poll_t poll;
    if (hf_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err) != HF_OK)
        return fprintf(stderr, "%s\n", err.text), 1;
    for (int i = 1; i <= BIDS; i++) /* all for one lock: they take turns */
        if (hf_acquire_start(client, "printer", HF_NTS, NULL, (uint64_t)i, &err) != HF_OK)
            return fprintf(stderr, "%s\n", err.text), 1;

    poll.data = client;
    if (uv_poll_init(uv_default_loop(), &poll, hf_event_fd(client)) != 0 ||
        uv_poll_start(&poll, UV_READABLE, on_readable) != 0)
        return fprintf(stderr, "the loop does not take the descriptor\n"), 1;
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    uv_poll_stop(&poll); /* before its descriptor goes */
    hf_close(client);
    printf("%d took turns\n", released);
    return failed > 0;
}
