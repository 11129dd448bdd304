/* C1, exclusion, and C2, ownership. */
#include <stdatomic.h>

#include "harness.h"

static void c1_free_lock_is_obtained_at_once(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_lock *lock = TAKE(ctx, client, name_of(ctx, "a"), options(LONG_MS, 0));

    CHECK(hf_lock_state(lock) == HF_STATE_HELD);
    CHECK(hf_lock_cause(lock) == HF_CAUSE_NONE);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c1_held_lock_is_busy_for_another_owner(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
}

static void c1_held_lock_is_busy_for_another_client(struct ctx *ctx)
{
    hf_client *one = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, one, name, options(LONG_MS, 0));

    EXPECT(HF_BUSY, probe(other, name));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, probe(other, name));
}

static void hold_until_told(struct ctx *ctx, int fd, void *arg)
{
    hf_lock *lock = TAKE(ctx, open_client(ctx), arg, options(LONG_MS, 0));

    say(fd, 'h');
    hear(fd, 'r');
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    say(fd, 'd');
}

static void c1_held_lock_is_busy_for_another_process(struct ctx *ctx)
{
    const char *name = name_of(ctx, "a");
    struct actor holder = actor_start(ctx, hold_until_told, (void *)name);
    hf_client *client = open_client(ctx);

    hear(holder.fd, 'h');
    EXPECT(HF_BUSY, probe(client, name));
    say(holder.fd, 'r');
    hear(holder.fd, 'd');
    EXPECT(HF_OK, probe(client, name));
    actor_join(&holder);
}

static void c1_other_names_are_free(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_lock *lock = TAKE(ctx, client, name_of(ctx, "a"), options(LONG_MS, 0));

    EXPECT(HF_OK, probe(client, name_of(ctx, "b")));
    EXPECT(HF_OK, probe(client, name_of(ctx, "")));
    EXPECT(HF_OK, probe(client, name_of(ctx, "a/")));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

/* A door that counts who is inside. */
struct room {
    _Atomic int inside, served;
};

static void visit(struct ctx *ctx, hf_client *client, const char *name, struct room *room,
                  int rounds)
{
    for (int i = 0; i < rounds; i++) {
        hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));
        CHECK(atomic_fetch_add(&room->inside, 1) == 0);
        atomic_fetch_add(&room->served, 1);
        CHECK(atomic_fetch_sub(&room->inside, 1) == 1);
        /* A crowded server may not answer in time. Then the release goes on by itself (C6). */
        int r = hf_lock_release(lock, &ctx->err);
        CHECK(r == HF_OK || r == HF_UNKNOWN);
    }
}

struct visitor {
    struct ctx ctx;
    hf_client *client;
    const char *name;
    struct room *room;
    pthread_t thread;
};

static void *visit_on_thread(void *arg)
{
    struct visitor *v = arg;

    visit(&v->ctx, v->client, v->name, v->room, 10);
    return NULL;
}

static void crowd_into(struct ctx *ctx, hf_client *const *clients, size_t client_count)
{
    struct visitor visitors[8];
    struct room room = {0};
    const char *name = name_of(ctx, "a");

    for (size_t i = 0; i < 8; i++) {
        visitors[i] =
            (struct visitor){.client = clients[i % client_count], .name = name, .room = &room};
        CHECK(pthread_create(&visitors[i].thread, NULL, visit_on_thread, &visitors[i]) == 0);
    }
    for (size_t i = 0; i < 8; i++)
        CHECK(pthread_join(visitors[i].thread, NULL) == 0);
    CHECK(room.served == 80);
}

static void c1_threads_are_never_inside_together(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);

    crowd_into(ctx, &client, 1);
}

static void c1_clients_are_never_inside_together(struct ctx *ctx)
{
    hf_client *clients[4];

    for (size_t i = 0; i < 4; i++)
        clients[i] = open_client(ctx);
    crowd_into(ctx, clients, 4);
}

struct visit {
    const char *name;
    struct room *room;
};

static void visit_as_process(struct ctx *ctx, int fd, void *arg)
{
    struct visit *v = arg;

    visit(ctx, open_client(ctx), v->name, v->room, 10);
    say(fd, 'd');
}

static void c1_processes_are_never_inside_together(struct ctx *ctx)
{
    struct visit v = {name_of(ctx, "a"), shared_memory(sizeof(struct room))};
    struct actor actors[4];

    for (size_t i = 0; i < 4; i++)
        actors[i] = actor_start(ctx, visit_as_process, &v);
    for (size_t i = 0; i < 4; i++) {
        hear(actors[i].fd, 'd');
        actor_join(&actors[i]);
    }
    CHECK(v.room->served == 40);
}

static void c2_late_release_is_stale_and_disturbs_nobody(struct ctx *ctx)
{
    hf_client *one = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(SHORT_MS, 0);

    opt.by_hand = 1;
    hf_lock *late = TAKE(ctx, one, name, opt);
    hf_lock *lock = TAKE(ctx, other, name, options(LONG_MS, HF_FOREVER));
    EXPECT(HF_STALE, hf_lock_release(late, &ctx->err));
    EXPECT(HF_BUSY, probe(one, name));
    CHECK(strcmp(look_at(other, name).ticket, hf_lock_ticket(lock)) == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c2_late_release_of_what_nobody_took_is_stale(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(SHORT_MS, 0);

    opt.by_hand = 1;
    hf_lock *late = TAKE(ctx, client, name, opt);
    await_free(client, name);
    EXPECT(HF_STALE, hf_lock_release(late, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
}

static void c2_no_lock_can_be_released_without_a_handle(struct ctx *ctx)
{
    (void)ctx;
    EXPECT(HF_OK, hf_lock_release(NULL, NULL));
}

static void c2_every_grant_has_a_ticket_of_its_own(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    char tickets[8][HF_TICKET_SIZE];

    for (size_t i = 0; i < 8; i++) {
        hf_lock *lock = TAKE(ctx, client, name_of(ctx, "a"), options(LONG_MS, 0));
        snprintf(tickets[i], sizeof tickets[i], "%s", hf_lock_ticket(lock));
        CHECK(strlen(tickets[i]) == HF_TICKET_SIZE - 1);
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(tickets[i], tickets[k]) != 0);
        EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    }
}

const struct conformance_case cases_mutex[] = {
    CASE(0, c1_free_lock_is_obtained_at_once),
    CASE(0, c1_held_lock_is_busy_for_another_owner),
    CASE(0, c1_held_lock_is_busy_for_another_client),
    CASE(HF_CAN_PROCESS, c1_held_lock_is_busy_for_another_process),
    CASE(0, c1_other_names_are_free),
    CASE(0, c1_threads_are_never_inside_together),
    CASE(0, c1_clients_are_never_inside_together),
    CASE(HF_CAN_PROCESS, c1_processes_are_never_inside_together),
    CASE(HF_CAN_LEASE, c2_late_release_is_stale_and_disturbs_nobody),
    CASE(HF_CAN_LEASE, c2_late_release_of_what_nobody_took_is_stale),
    CASE(0, c2_no_lock_can_be_released_without_a_handle),
    CASE(0, c2_every_grant_has_a_ticket_of_its_own),
    {0},
};
