/* Ctrl-C ends the wait, not the program: hf_cancel_fire() may be called from a signal handler.
 *
 *     ./cancel [URL]
 *
 * A cancelled bid leaves the queue and will not be granted later. To have something to see, an
 * alarm stands for the person at the keyboard. */
#define _POSIX_C_SOURCE 200809L /* sigaction, also as strict C11 */
#include <holdfast.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static hf_cancel *cancel;
static void on_signal(int number)
{
    (void)number;
    hf_cancel_fire(cancel); /* async-signal-safe; once fired it stays fired */
}

static int wait_for_it(hf_client *client)
{
    hf_options opt = HF_OPTIONS_INIT; /* waits for ever */
    hf_lock *lock;
    hf_error err;

    opt.cancel = cancel;
    int code = hf_acquire(client, "printer", HF_NTS, &opt, &lock, &err);
    if (code == HF_OK) {
        hf_lock_release(lock, NULL);
        return 1;
    }
    printf("%s\n", err.text);
    return code == HF_CANCELLED ? 0 : 1;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : NULL;
    struct sigaction act = {.sa_handler = on_signal};
    hf_client *mine, *theirs;
    hf_lock *lock;
    hf_error err;

    if (hf_cancel_new(&cancel) != HF_OK || sigaction(SIGINT, &act, NULL) != 0 ||
        sigaction(SIGALRM, &act, NULL) != 0)
        return 1;
    if (hf_open(url, NULL, &mine, &err) != HF_OK || hf_open(url, NULL, &theirs, &err) != HF_OK ||
        hf_acquire(theirs, "printer", HF_NTS, NULL, &lock, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    alarm(1);
    int status = wait_for_it(mine);
    hf_lock_release(lock, NULL);
    hf_close(theirs);
    hf_close(mine);
    hf_cancel_free(cancel);
    return status;
}
