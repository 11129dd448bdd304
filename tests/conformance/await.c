/* Looking into the store, and waiting for what it shows.
 *
 * There is no call that waits for a change in a store, so these ask again and again, with a short
 * pause that only saves work: what decides is the answer, never the pause. */
#include <poll.h>
#include <time.h>

#include "harness.h"

static void pause_briefly(void)
{
    static const struct timespec pause = {0, 3000000};

    nanosleep(&pause, NULL);
}

static hf_view *view_of(hf_client *client, const char *name)
{
    hf_query query = {.size = sizeof query, .name = name, .name_len = strlen(name)};
    hf_view *view;
    hf_error err = {0};
    int r = hf_inspect(client, &query, &view, &err);

    if (r != 0)
        fail_at(__FILE__, __LINE__, "inspect: %s", err.text);
    return view;
}

size_t count_place(hf_client *client, const char *name, hf_place place)
{
    hf_view *view = view_of(client, name);
    size_t count = 0;

    for (size_t i = 0; i < hf_view_count(view); i++)
        count += hf_view_entry(view, i)->place == place;
    hf_view_free(view);
    return count;
}

void await_count(hf_client *client, const char *name, hf_place place, size_t count)
{
    int64_t until_ms = now_ms() + AWAIT_MS;
    size_t seen;

    while ((seen = count_place(client, name, place)) != count) {
        if (now_ms() > until_ms)
            fail_at(__FILE__, __LINE__, "waited for %zu at place %d, there are %zu", count, place,
                    seen);
        pause_briefly();
    }
}

size_t in_queue(hf_client *client, size_t waiting)
{
    return hf_capabilities(client) & HF_CAN_QUEUE ? waiting : 0;
}

void await_free(hf_client *client, const char *name)
{
    int64_t until_ms = now_ms() + AWAIT_MS;

    for (;;) {
        hf_view *view = view_of(client, name);
        size_t count = hf_view_count(view);
        hf_view_free(view);
        if (count == 0)
            return;
        if (now_ms() > until_ms)
            fail_at(__FILE__, __LINE__, "waited for it to be free, there are %zu", count);
        pause_briefly();
    }
}

void await_lost(hf_lock *lock)
{
    struct pollfd p = {.fd = hf_lock_fd(lock), .events = POLLIN};

    CHECK(p.fd >= 0);
    if (poll(&p, 1, AWAIT_MS) != 1)
        fail_at(__FILE__, __LINE__, "waited for the lock to be lost");
    CHECK(hf_lock_state(lock) == HF_STATE_LOST);
}

void await_renewal(const hf_lock *lock)
{
    int64_t until_ms = now_ms() + AWAIT_MS, last_ms = hf_lock_remaining_ms(lock), left_ms;

    while ((left_ms = hf_lock_remaining_ms(lock)) <= last_ms) {
        if (now_ms() > until_ms)
            fail_at(__FILE__, __LINE__, "waited for the keeper to renew it");
        last_ms = left_ms;
        pause_briefly();
    }
}

void await_age(int64_t since_ms, int64_t ms)
{
    while (now_ms() - since_ms < ms)
        pause_briefly();
}

static size_t count_lines(const char *path, const char *operation, const char *answer)
{
    FILE *in = fopen(path, "r");
    char line[1200], wanted[64];
    size_t count = 0;

    CHECK(in != NULL);
    snprintf(wanted, sizeof wanted, operation[0] != '\0' ? " %s " : "%s", operation);
    while (fgets(line, sizeof line, in) != NULL)
        count += strstr(line, wanted) != NULL && strstr(line, answer) != NULL;
    fclose(in);
    return count;
}

void await_line(const char *path, const char *operation, const char *answer, size_t count)
{
    int64_t until_ms = now_ms() + AWAIT_MS;

    while (count_lines(path, operation, answer) < count) {
        if (now_ms() > until_ms)
            fail_at(__FILE__, __LINE__, "waited for %s%s in the trace", operation, answer);
        pause_briefly();
    }
}

struct found look_at(hf_client *client, const char *name)
{
    hf_view *view = view_of(client, name);
    const hf_entry *e = hf_view_entry(view, 0);
    struct found found;

    if (hf_view_count(view) != 1)
        fail_at(__FILE__, __LINE__, "expected one entry, there are %zu", hf_view_count(view));
    found = (struct found){.place = e->place,
                           .mode = e->mode,
                           .generation = e->generation,
                           .ttl_ms = e->ttl_ms,
                           .lock_delay_ms = e->lock_delay_ms,
                           .age_ms = e->age_ms,
                           .remaining_ms = e->remaining_ms,
                           .pid = e->pid,
                           .claimed = e->claimed};
    snprintf(found.ticket, sizeof found.ticket, "%s", e->ticket);
    snprintf(found.note, sizeof found.note, "%s", e->note);
    hf_view_free(view);
    return found;
}
