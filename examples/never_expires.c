/* A lock that never expires, and how a forgotten one is found by its age and broken.
 *
 *     ./never_expires [URL]
 *
 * For work that no timer may cut off: a migration, a lock that a person holds. The price is that
 * somebody has to clean up after a crash. `holdfast ls --older-than 1d` and `holdfast break` do the
 * same from a shell. */
#include <holdfast.h>
#include <stdio.h>
#include <threads.h>

static int break_older_than(hf_client *client, int64_t age_ms)
{
    hf_query query = {
        .size = sizeof query, .prefix = "migrate/", .prefix_len = 8, .older_than_ms = age_ms};
    hf_view *view;
    hf_error err;
    int broken = 0;

    if (hf_inspect(client, &query, &view, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    for (size_t i = 0; i < hf_view_count(view); i++) {
        const hf_entry *e = hf_view_entry(view, i);
        printf("%s: held for %lld ms by pid %lld on %s (%s)\n", e->name, (long long)e->age_ms,
               (long long)e->pid, e->host, e->note);
        if (hf_break(client, e->name, e->name_len, e->ticket, 0, &err) == HF_OK)
            broken++;
        else
            fprintf(stderr, "%s\n", err.text);
    }
    hf_view_free(view);
    return broken;
}

int main(int argc, char **argv)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_client *client;
    hf_lock *lock;
    hf_error err;

    opt.ttl_ms = HF_NEVER;
    opt.note = "adds an index";
    if (hf_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err) != HF_OK ||
        hf_acquire(client, "migrate/users", HF_NTS, &opt, &lock, &err) != HF_OK ||
        hf_lock_detach(lock, &err) != HF_OK) { /* as after a crash: it stays in the store */
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    thrd_sleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
    int young = break_older_than(client, 3600000), old = break_older_than(client, 50);
    printf("broken: %d younger than an hour, %d older than 50 ms\n", young, old);
    hf_close(client);
    return young == 0 && old == 1 ? 0 : 1;
}
