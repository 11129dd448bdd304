/* C13: a forked child disturbs nothing, and a process that stood still learns it with its first
 * question. */
#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static bool sleeps(const char *task)
{
    char path[64], state = '?';

    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", task);
    FILE *in = fopen(path, "r");
    if (in == NULL)
        return true; /* it has ended */
    bool known = fscanf(in, "%*d (%*[^)]) %c", &state) == 1;
    fclose(in);
    return known && state == 'S';
}

static bool others_sleep(void)
{
    DIR *dir = opendir("/proc/self/task");
    bool all = true;

    CHECK(dir != NULL);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        all = all &&
              (e->d_name[0] == '.' || strtol(e->d_name, NULL, 10) == getpid() || sleeps(e->d_name));
    closedir(dir);
    return all;
}

static void await_sleep_of_others(void)
{
    for (int64_t began_ms = now_ms(); !others_sleep(); await_age(now_ms(), 1))
        CHECK(now_ms() - began_ms < AWAIT_MS);
}

/* Forks a process that has threads, as a careless program would; the child must end well. */
static void in_child(void (*part)(hf_client *client, hf_lock *lock, const char *name),
                     hf_client *client, hf_lock *lock, const char *name)
{
    int status;

    fflush(stdout);
    if (UNDER_ASAN)
        await_sleep_of_others();
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        part(client, lock, name);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void try_everything(hf_client *client, hf_lock *lock, const char *name)
{
    hf_options opt = options(LONG_MS, 0);
    hf_view *view;
    hf_lock *none;
    uint64_t count;

    CHECK(hf_lock_state(lock) == HF_STATE_LOST);
    CHECK(hf_lock_cause(lock) == HF_CAUSE_FORKED);
    CHECK(hf_lock_remaining_ms(lock) == 0);
    CHECK(hf_lock_fd(lock) == HF_FORKED);
    EXPECT(HF_FORKED, hf_lock_renew(lock, NULL));
    EXPECT(HF_FORKED, hf_lock_detach(lock, NULL));
    EXPECT(HF_FORKED, hf_acquire(client, name, HF_NTS, &opt, &none, NULL));
    EXPECT(HF_FORKED, hf_inspect(client, NULL, &view, NULL));
    EXPECT(HF_FORKED, hf_break(client, name, HF_NTS, hf_lock_ticket(lock), 1, NULL));
    EXPECT(HF_FORKED, hf_setup(client, NULL));
    EXPECT(HF_FORKED, hf_purge(client, 1, &count, NULL));
    EXPECT(HF_FORKED, hf_lock_release(lock, NULL));
}

static void c13_forked_child_can_do_nothing(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    in_child(try_everything, client, lock, name);
    CHECK(hf_lock_state(lock) == HF_STATE_HELD);
    EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err));
    CHECK(count_place(client, name, HF_PLACE_INSIDE) == 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void close_politely(hf_client *client, hf_lock *lock, const char *name)
{
    (void)lock;
    (void)name;
    hf_close(client);
}

static void c13_child_that_closes_does_not_end_the_parents_session(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(2000, 0));
    struct bid bid;

    bid_queue(&bid, client, name, options(LONG_MS, HF_FOREVER), 1);
    in_child(close_politely, client, lock, name);
    await_age(now_ms(), 2500); /* the keeper goes on */
    CHECK(hf_lock_state(lock) != HF_STATE_LOST);
    CHECK(count_place(client, name, HF_PLACE_WAITING) == in_queue(client, 1));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
}

static void exit_at_once(hf_client *client, hf_lock *lock, const char *name)
{
    (void)client;
    (void)lock;
    (void)name;
}

static void c13_child_that_ends_takes_nothing_along(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    for (int i = 0; i < 3; i++)
        in_child(exit_at_once, client, lock, name);
    EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err));
    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

struct own_store {
    const char *url, *name;
};

static void open_a_client_of_its_own(hf_client *client, hf_lock *lock, const char *arg)
{
    const struct own_store *own = (const void *)arg;
    hf_client *mine;

    (void)client;
    (void)lock;
    EXPECT(HF_OK, hf_open(own->url, NULL, &mine, NULL));
    CHECK(count_place(mine, own->name, HF_PLACE_INSIDE) == 1);
    if (!UNDER_TSAN)
        EXPECT(HF_BUSY, probe(mine, own->name));
    hf_close(mine);
}

static void c13_child_opens_a_client_of_its_own(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    struct own_store own = {ctx->url, name_of(ctx, "a")};
    hf_lock *lock = TAKE(ctx, client, own.name, options(LONG_MS, 0));

    in_child(open_a_client_of_its_own, client, lock, (const char *)&own);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void hold_and_be_frozen(struct ctx *ctx, int fd, void *arg)
{
    hf_lock *lock = TAKE(ctx, open_client(ctx), arg, options(500, 0));
    struct pollfd lost = {.fd = hf_lock_fd(lock), .events = POLLIN};

    say(fd, 'h');
    hear(fd, 'q');
    CHECK(hf_lock_state(lock) == HF_STATE_LOST); /* the first question after it */
    CHECK(hf_lock_remaining_ms(lock) == 0);
    CHECK(poll(&lost, 1, AWAIT_MS) == 1);
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
    say(fd, 'd');
}

static void c13_process_stopped_beyond_its_lease_finds_it_lost(struct ctx *ctx)
{
    const char *name = name_of(ctx, "a");
    struct actor frozen = actor_start(ctx, hold_and_be_frozen, (void *)name);
    hf_client *client = open_client(ctx);

    hear(frozen.fd, 'h');
    actor_stop(ctx, &frozen);
    say(frozen.fd, 'q');
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));
    actor_go_on(&frozen);
    hear(frozen.fd, 'd');
    actor_join(&frozen);
    EXPECT(HF_BUSY, probe(client, name)); /* its late release disturbed nobody */
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c5_waiter_stopped_beyond_its_turn_waits_again(struct ctx *ctx)
{
    struct turn t = turn_start(ctx, options(1000, HF_FOREVER));

    actor_stop(ctx, &t.next);
    EXPECT(HF_OK, hf_lock_release(t.lock, &ctx->err)); /* its turn comes, and passes */
    hf_lock *lock = TAKE(ctx, t.client, t.name, options(LONG_MS, HF_FOREVER));
    actor_go_on(&t.next);
    await_count(t.client, t.name, HF_PLACE_WAITING, 1); /* it did not believe the old call */
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hear(t.next.fd, 'h');
    say(t.next.fd, 'r');
    hear(t.next.fd, 'd');
    actor_join(&t.next);
}

const struct conformance_case cases_fork[] = {
    CASE(0, c13_forked_child_can_do_nothing),
    CASE(0, c13_child_that_closes_does_not_end_the_parents_session),
    CASE(0, c13_child_that_ends_takes_nothing_along),
    CASE(HF_CAN_PROCESS, c13_child_opens_a_client_of_its_own),
    CASE(HF_CAN_PROCESS | HF_CAN_LEASE, c13_process_stopped_beyond_its_lease_finds_it_lost),
    CASE(HF_CAN_PROCESS | HF_CAN_LEASE | HF_CAN_QUEUE,
         c5_waiter_stopped_beyond_its_turn_waits_again),
    {0},
};
