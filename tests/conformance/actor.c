/* Bids on threads, and parts played by other processes. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static void *run_bid(void *arg)
{
    static _Atomic uint64_t last_order;
    struct bid *bid = arg;

    bid->code = hf_acquire(bid->client, bid->name, HF_NTS, &bid->opt, &bid->lock, &bid->err);
    if (bid->code == HF_OK)
        bid->order = atomic_fetch_add(&last_order, 1) + 1;
    bid->at_ms = now_ms();
    __atomic_store_n(&bid->done, true, __ATOMIC_RELEASE);
    return NULL;
}

void bid_start(struct bid *bid, hf_client *client, const char *name, hf_options opt)
{
    pthread_attr_t attr;

    *bid = (struct bid){.client = client, .name = name, .opt = opt};
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setstacksize(&attr, 512 * 1024) == 0);
    CHECK(pthread_create(&bid->thread, &attr, run_bid, bid) == 0);
    pthread_attr_destroy(&attr);
}

static void note_wait(size_t position, void *arg)
{
    struct bid *bid = arg;

    (void)position;
    __atomic_store_n(&bid->waits, true, __ATOMIC_RELEASE);
}

void bid_queue(struct bid *bid, hf_client *client, const char *name, hf_options opt, size_t waiting)
{
    if (hf_capabilities(client) & HF_CAN_QUEUE) {
        bid_start(bid, client, name, opt);
        await_count(client, name, HF_PLACE_WAITING, waiting);
        return;
    }
    CHECK(opt.on_wait == NULL && opt.arg == NULL);
    opt.on_wait = note_wait;
    opt.arg = bid;
    bid_start(bid, client, name, opt);
    for (int64_t began_ms = now_ms(); !__atomic_load_n(&bid->waits, __ATOMIC_ACQUIRE);) {
        CHECK(now_ms() - began_ms < AWAIT_MS && !bid_is_done(bid));
        await_age(now_ms(), 1);
    }
}

bool bid_is_done(struct bid *bid)
{
    return __atomic_load_n(&bid->done, __ATOMIC_ACQUIRE);
}

int bid_join(struct bid *bid)
{
    CHECK(pthread_join(bid->thread, NULL) == 0);
    bid->joined = true;
    return bid->code;
}

hf_lock *bid_join_lock(struct bid *bid)
{
    if (bid_join(bid) != HF_OK)
        fail_at(__FILE__, __LINE__, "the bid got %s: %s", hf_code_name(bid->code), bid->err.text);
    return bid->lock;
}

struct actor actor_start(struct ctx *ctx, actor_part *part, void *arg)
{
    struct actor actor;
    int fds[2];

    CHECK(ctx->client_count == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    fflush(stdout);
    actor.pid = fork();
    CHECK(actor.pid >= 0);
    if (actor.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        part(ctx, fds[1], arg);
        _exit(0);
    }
    close(fds[1]);
    actor.fd = fds[0];
    return actor;
}

static int reap(struct actor *actor)
{
    int status;

    CHECK(waitpid(actor->pid, &status, 0) == actor->pid);
    close(actor->fd);
    return status;
}

void actor_kill(struct actor *actor)
{
    kill(actor->pid, SIGKILL);
    reap(actor);
}

static void stop(struct actor *actor)
{
    int status;

    kill(actor->pid, SIGSTOP);
    CHECK(waitpid(actor->pid, &status, WUNTRACED) == actor->pid);
    CHECK(WIFSTOPPED(status));
}

void actor_stop(struct ctx *ctx, struct actor *actor)
{
    hf_client *client = open_impatient(ctx);
    const char *name = name_of(ctx, "at-rest");
    int64_t until_ms = now_ms() + AWAIT_MS;

    for (stop(actor); probe(client, name) != HF_OK; stop(actor)) {
        CHECK(now_ms() < until_ms);
        actor_go_on(actor);
        await_free(client, name);
    }
    close_client(ctx, client);
}

void actor_go_on(struct actor *actor)
{
    kill(actor->pid, SIGCONT);
}

void actor_join(struct actor *actor)
{
    int status = reap(actor);

    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void say(int fd, char word)
{
    CHECK(send(fd, &word, 1, MSG_NOSIGNAL) == 1);
}

void hear(int fd, char word)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char heard;

    if (poll(&p, 1, AWAIT_MS) != 1)
        fail_at(__FILE__, __LINE__, "waited for '%c' from another process", word);
    if (recv(fd, &heard, 1, 0) != 1)
        fail_at(__FILE__, __LINE__, "another process ended before it said '%c'", word);
    if (heard != word)
        fail_at(__FILE__, __LINE__, "another process said '%c', not '%c'", heard, word);
}

void wait_and_hold(struct ctx *ctx, int fd, void *arg)
{
    const struct waiting_part *part = arg;

    hear(fd, 'b');
    hf_lock *lock = TAKE(ctx, open_client(ctx), part->name, part->opt);
    CHECK(hf_lock_state(lock) != HF_STATE_LOST);
    say(fd, 'h');
    hear(fd, 'r');
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    say(fd, 'd');
}

struct turn turn_start(struct ctx *ctx, hf_options opt)
{
    struct waiting_part part = {name_of(ctx, "a"), opt};
    struct turn t = {.next = actor_start(ctx, wait_and_hold, &part), .name = part.name};

    t.client = open_client(ctx);
    t.lock = TAKE(ctx, t.client, t.name, options(LONG_MS, 0));
    say(t.next.fd, 'b');
    await_count(t.client, t.name, HF_PLACE_WAITING, 1);
    return t;
}

void pass_over_frozen(struct ctx *ctx, hf_options frozen, hf_options next)
{
    struct turn t = turn_start(ctx, frozen);
    struct bid bid;

    bid_queue(&bid, t.client, t.name, next, 2);
    actor_stop(ctx, &t.next);
    EXPECT(HF_OK, hf_lock_release(t.lock, &ctx->err)); /* to one who cannot take it */
    hf_lock *lock = bid_join_lock(&bid);
    actor_kill(&t.next);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    await_free(t.client, t.name);
}

void *shared_memory(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(at != MAP_FAILED);
    return at;
}
