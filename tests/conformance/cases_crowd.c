/* A crowd at one door: 500 wait (or --crowd), a third gives up, a tenth is killed, the others are
 * served, one at a time and in their order (C1, C5). With --in-turn they come one after the other,
 * for stores that may show those of the same moment in another order than they serve them. */
#include <stdatomic.h>

#include "harness.h"

#define PROCESSES 10
#define CROWD_MAX 500

/* The dead are missed after so long, and who gives no sign of life for so long has lost its place: the
 * longest there is, because a crowd may make its server slow. */
#define TTL_MS 10000

static int crowd, per_process; /* each case runs in a process of its own */

static void gather(const struct ctx *ctx)
{
    per_process = ctx->crowd / PROCESSES;
    crowd = per_process * PROCESSES;
}

struct door {
    _Atomic int inside, served, cancelled;
    _Atomic int order[CROWD_MAX]; /* by whom it was served: number + 1 */
};

struct waiter {
    struct door *door;
    hf_client *client;
    const char *name;
    hf_cancel *cancel; /* of those who will give up */
    char note[16];
    int number;
    pthread_t thread;
};

static void *wait_in_crowd(void *arg)
{
    struct waiter *w = arg;
    hf_options opt = options(TTL_MS, HF_FOREVER);
    hf_lock *lock;

    opt.patience_ms = HF_FOREVER; /* a crowd may make its server slow */
    opt.cancel = w->cancel;
    opt.note = w->note;
    int r = hf_acquire(w->client, w->name, HF_NTS, &opt, &lock, NULL);
    if (w->cancel != NULL) {
        EXPECT(HF_CANCELLED, r);
        w->door->cancelled++;
        return NULL;
    }
    EXPECT(HF_OK, r);
    CHECK(atomic_fetch_add(&w->door->inside, 1) == 0);
    w->door->order[w->door->served++] = w->number + 1;
    CHECK(atomic_fetch_sub(&w->door->inside, 1) == 1);
    EXPECT(HF_OK, hf_lock_release(lock, NULL));
    return NULL;
}

static void start_waiter(struct waiter *w)
{
    pthread_attr_t attr;

    snprintf(w->note, sizeof w->note, "%d", w->number);
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setstacksize(&attr, 256 * 1024) == 0);
    CHECK(pthread_create(&w->thread, &attr, wait_in_crowd, w) == 0);
    pthread_attr_destroy(&attr);
}

/* The queue as the store shows it, filtered by `stays`; the notes are the numbers. */
static size_t read_queue(hf_client *client, const char *name, bool (*stays)(int number),
                         int *numbers)
{
    hf_query query = {.size = sizeof query, .name = name, .name_len = strlen(name)};
    size_t count = 0;
    hf_view *view;

    EXPECT(HF_OK, hf_inspect(client, &query, &view, NULL));
    for (size_t i = 0; i < hf_view_count(view); i++) {
        const hf_entry *e = hf_view_entry(view, i);
        int number = (int)strtol(e->note, NULL, 10);
        if (e->place == HF_PLACE_WAITING && stays(number))
            numbers[count++] = number;
    }
    hf_view_free(view);
    return count;
}

static void check_served(const struct door *door, const int *queue, size_t count)
{
    CHECK((size_t)door->served == count);
    for (size_t i = 0; i < count; i++)
        CHECK(door->order[i] == queue[i] + 1);
}

static bool gives_up(int number)
{
    return number % 3 == 0;
}

static bool stays_to_the_end(int number)
{
    return !gives_up(number);
}

static void c5_crowd_of_threads_is_served(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    struct door *door = shared_memory(sizeof *door);
    struct waiter *all = calloc(CROWD_MAX, sizeof *all);
    int queue[CROWD_MAX];
    hf_cancel *cancel;

    gather(ctx);
    CHECK(all != NULL);
    EXPECT(HF_OK, hf_cancel_new(&cancel));
    for (int i = 0; i < crowd; i++) {
        all[i] = (struct waiter){.door = door,
                                 .client = i % 2 ? client : other,
                                 .name = name,
                                 .number = i,
                                 .cancel = gives_up(i) ? cancel : NULL};
        start_waiter(&all[i]);
        if (ctx->in_turn)
            await_count(client, name, HF_PLACE_WAITING, (size_t)i + 1);
    }
    await_count(client, name, HF_PLACE_WAITING, (size_t)crowd);
    size_t count = read_queue(client, name, stays_to_the_end, queue);
    hf_cancel_fire(cancel);
    await_count(client, name, HF_PLACE_WAITING, count);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    for (int i = 0; i < crowd; i++)
        CHECK(pthread_join(all[i].thread, NULL) == 0);
    check_served(door, queue, count);
    CHECK((size_t)door->cancelled == (size_t)crowd - count);
    hf_cancel_free(cancel);
    free(all);
}

struct crowd_part {
    struct door *door;
    const char *name;
    int first;
};

static void wait_as_process(struct ctx *ctx, int fd, void *arg)
{
    struct crowd_part *part = arg;
    struct waiter all[CROWD_MAX / PROCESSES];
    hf_client *client = open_client(ctx);
    hf_cancel *cancel;

    EXPECT(HF_OK, hf_cancel_new(&cancel));
    hear(fd, 'b');
    for (int i = 0; i < per_process; i++) {
        int number = part->first + i;
        all[i] = (struct waiter){.door = part->door,
                                 .client = client,
                                 .name = part->name,
                                 .number = number,
                                 .cancel = gives_up(number) ? cancel : NULL};
        start_waiter(&all[i]);
        if (ctx->in_turn && i + 1 < per_process) /* the last one is awaited by the parent */
            await_count(client, part->name, HF_PLACE_WAITING, (size_t)number + 1);
    }
    hear(fd, 'c');
    hf_cancel_fire(cancel);
    for (int i = 0; i < per_process; i++)
        CHECK(pthread_join(all[i].thread, NULL) == 0);
    say(fd, 'd');
}

/* The waiters of process 4 are killed. */
static bool survives(int number)
{
    return !gives_up(number) && number / per_process != 4;
}

static bool is_killed(int number)
{
    return number / per_process == 4;
}

static void await_cancelled(struct door *door, int count)
{
    int64_t began_ms = now_ms();

    while (door->cancelled < count) {
        CHECK(now_ms() - began_ms < AWAIT_MS);
        await_age(now_ms(), 5);
    }
}

static void c5_crowd_of_processes_is_served_although_some_die(struct ctx *ctx)
{
    const char *name = name_of(ctx, "a");
    struct door *door = shared_memory(sizeof *door);
    struct crowd_part parts[PROCESSES];
    struct actor actors[PROCESSES];
    int queue[CROWD_MAX], dead[CROWD_MAX];

    gather(ctx);
    for (int i = 0; i < PROCESSES; i++) {
        parts[i] = (struct crowd_part){door, name, i * per_process};
        actors[i] = actor_start(ctx, wait_as_process, &parts[i]);
    }
    hf_client *client = open_client(ctx);
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    for (int i = 0; i < PROCESSES; i++) {
        say(actors[i].fd, 'b');
        if (ctx->in_turn)
            await_count(client, name, HF_PLACE_WAITING, (size_t)(i + 1) * (size_t)per_process);
    }
    await_count(client, name, HF_PLACE_WAITING, (size_t)crowd);
    size_t count = read_queue(client, name, survives, queue);
    CHECK(read_queue(client, name, is_killed, dead) == (size_t)per_process);
    actor_kill(&actors[4]);
    for (int i = 0; i < PROCESSES; i++) {
        if (i != 4)
            say(actors[i].fd, 'c');
    }
    await_cancelled(door, crowd - per_process - (int)count);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    for (int i = 0; i < PROCESSES; i++) {
        if (i == 4)
            continue;
        struct actor *a = &actors[i];
        hear(a->fd, 'd');
        actor_join(a);
    }
    check_served(door, queue, count);
    await_free(client, name);
}

const struct conformance_case cases_crowd[] = {
    CASE_ALONE(HF_CAN_QUEUE, c5_crowd_of_threads_is_served),
    CASE_ALONE(HF_CAN_QUEUE | HF_CAN_PROCESS, c5_crowd_of_processes_is_served_although_some_die),
    {0},
};
