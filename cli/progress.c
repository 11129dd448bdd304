/* See progress.h. A thread of its own, because a store with push has nothing to say to the waiting
 * thread for a long time, while the queue moves on. It only exists on a terminal and while there is
 * something to wait for. */
#include "progress.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"
#include "text.h"

#include "base/banned.h"

#define EVERY_MS    1000
#define CLEAR_LINE  "\r\033[K"
#define WIDTH_USUAL 80

struct progress {
    hf_client *client;
    const char *name;
    int stop_fd;
    bool started;
    bool shown; /* the thread's, until it is joined */
    pthread_t thread;
};

struct queue {
    const hf_entry *holder; /* the one that is inside for longest */
    size_t others;          /* inside besides */
    size_t position;        /* ours; 0: not seen */
    size_t waiting;
};

static void read_queue(const hf_view *view, struct queue *ret)
{
    *ret = (struct queue){0};
    for (size_t i = 0; i < hf_view_count(view); i++) {
        const hf_entry *entry = hf_view_entry(view, i);
        char host[256] = "";
        if (entry->place != HF_PLACE_WAITING) {
            ret->others += ret->holder != NULL;
            if (!ret->holder || entry->age_ms > ret->holder->age_ms)
                ret->holder = entry;
            continue;
        }
        ret->waiting++;
        gethostname(host, sizeof host - 1);
        if (entry->pid == getpid() && strcmp(entry->host, host) == 0)
            ret->position = entry->position;
    }
}

static void print_line(FILE *out, const struct progress *w, const struct queue *q)
{
    fputs("holdfast: waiting for '", out);
    cli_print_name(out, w->name, strlen(w->name));
    fputs("'", out);
    if (q->holder) {
        fputs(q->holder->place == HF_PLACE_LINGERING ? ": kept closed after " : ": held by ", out);
        cli_print_text(out, q->holder->user);
        fputc('@', out);
        cli_print_text(out, q->holder->host);
        fprintf(out, " pid %lld for ", (long long)q->holder->pid);
        cli_print_duration(out, q->holder->age_ms);
        if (q->others > 0)
            fprintf(out, " and %zu more", q->others);
    }
    if (q->position > 0)
        fprintf(out, "; number %zu of %zu in the queue", q->position, q->waiting);
    if (q->holder && q->holder->note[0] != '\0') {
        fputs("; ", out);
        cli_print_text(out, q->holder->note);
    }
}

/* How many bytes of the line fit on the screen; what wraps could not be cleared. */
static size_t fitting(const char *line)
{
    struct winsize size = {0};
    size_t len = strlen(line), width = WIDTH_USUAL, at = 0;
    uint32_t c;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        width = size.ws_col;
    for (size_t column = 0; at < len; column++) {
        size_t n = hf__utf8_decode(line + at, len - at, &c);
        /* A character may be two columns wide. */
        column += c >= 0x1100;
        if (n == 0 || column + 1 >= width)
            break;
        at += n;
    }
    return at;
}

static void show(struct progress *w)
{
    hf_query query = {.size = sizeof query, .name = w->name, .name_len = HF_NTS};
    struct pollfd ready = {STDERR_FILENO, POLLOUT, 0};
    hf_view *view;
    struct queue queue;
    char *line = NULL;
    size_t len;

    /* In the background the terminal is not ours to write on. */
    if (tcgetpgrp(STDERR_FILENO) != getpgrp() || poll(&ready, 1, 0) != 1)
        return;
    if (hf_inspect(w->client, &query, &view, NULL) != HF_OK)
        return;
    FILE *out = open_memstream(&line, &len);
    if (out) {
        read_queue(view, &queue);
        print_line(out, w, &queue);
        if (fclose(out) == 0)
            w->shown = dprintf(STDERR_FILENO, CLEAR_LINE "%.*s", (int)fitting(line), line) > 0;
    }
    free(line);
    hf_view_free(view);
}

static void *keep_showing(void *arg)
{
    struct progress *w = arg;
    struct pollfd stop = {w->stop_fd, POLLIN, 0};

    do
        show(w);
    while (poll(&stop, 1, EVERY_MS) <= 0);
    return NULL;
}

struct progress *progress_new(hf_client *client, const char *name)
{
    struct progress *w = isatty(STDERR_FILENO) ? calloc(1, sizeof *w) : NULL;

    if (!w)
        return NULL;
    *w = (struct progress){.client = client, .name = name, .stop_fd = eventfd(0, EFD_CLOEXEC)};
    if (w->stop_fd >= 0)
        return w;
    free(w);
    return NULL;
}

void progress_tell(size_t position, void *arg)
{
    struct progress *w = arg;
    sigset_t all, old;

    (void)position;
    if (!w || w->started)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    w->started = pthread_create(&w->thread, NULL, keep_showing, w) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void progress_free(struct progress *progress)
{
    if (!progress)
        return;
    if (progress->started) {
        eventfd_write(progress->stop_fd, 1);
        pthread_join(progress->thread, NULL);
    }
    if (progress->shown)
        dprintf(STDERR_FILENO, CLEAR_LINE);
    close(progress->stop_fd);
    free(progress);
}
