/* See line.h. */
#include "etcd/line.h"

uint64_t generation_of(const hf_lock *lock)
{
    uint64_t generation = 0;

    assert_int_equal(hf_lock_generation(lock, &generation), HF_OK);
    return generation;
}

void line_up(struct line *line, const char *name)
{
    for (int i = 0; i < 3; i++) {
        if (line->clients[i] == NULL)
            line->clients[i] = open_live("");
    }
    line->held = take_free(line->clients[0], name, HELD_MS);
    line->generation = generation_of(line->held);
    wait_in_thread(&line->first, line->clients[1], name);
    await_waiting(line->clients[0], name, 1);
    await_watchers(1);
    wait_in_thread(&line->second, line->clients[2], name);
    await_waiting(line->clients[0], name, 2);
    await_watchers(2);
}

void disperse(struct line *line)
{
    for (int i = 0; i < 3; i++)
        hf_close(line->clients[i]);
}

void release_all(struct line *line)
{
    assert_int_equal(join_waiter(&line->first), HF_OK);
    uint64_t first = line->first.generation;
    assert_true(first > line->generation);
    assert_int_equal(hf_lock_release(line->first.lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&line->second), HF_OK);
    assert_true(line->second.generation > first);
    assert_int_equal(hf_lock_release(line->second.lock, NULL), HF_OK);
}

hf_client *open_deaf(void)
{
    char url[420];

    snprintf(url, sizeof url, "fault+%s", url_of(0, "drop_wakes=*"));
    return open_url(url);
}

int is_claimed(void *place)
{
    const struct place *at = place;
    hf_query query = {.size = sizeof query, .name = at->name, .name_len = HF_NTS};
    hf_view *view = NULL;

    assert_int_equal(hf_inspect(at->client, &query, &view, NULL), HF_OK);
    bool claimed = hf_view_count(view) > 0 && hf_view_entry(view, 0)->claimed;
    hf_view_free(view);
    return claimed;
}
