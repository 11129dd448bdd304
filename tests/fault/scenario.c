/* See scenario.h. */
#include "scenario.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/check.h"

#define TTL_MS 1500 /* short, so that what a failure leaves to the lease ends soon */

struct tour {
    const struct scenario *scenario;
    hf_client *client;
    int first;                        /* the first code out of order */
    char left_behind[HF_TICKET_SIZE]; /* detached and not adopted; "" if none */
};

/* Takes note of a result. `wanted` is the code of a tour without failures. */
static int take(struct tour *t, const char *step, int code, int wanted, const hf_error *err)
{
    bool allowed = code == wanted;

    for (const int *a = t->scenario->allowed; *a != 0; a++)
        allowed = allowed || code == *a;
    if (!allowed)
        fail_msg("%s: %s (%s)", step, hf_code_name(code), err != NULL ? err->text : "");
    if (err != NULL && code != 0) {
        check_number(step, err->code, code);
        assert_true(err->text[0] != '\0');
    }
    if (code != wanted && t->first == 0)
        t->first = code;
    return code;
}

static hf_lock *acquire(struct tour *t, const char *name, const hf_options *opt, int wanted)
{
    hf_lock *lock = NULL;
    hf_error err = {0};
    int code = take(t, name, hf_acquire(t->client, name, HF_NTS, opt, &lock, &err), wanted, &err);

    assert_true((code == 0) == (lock != NULL));
    return lock;
}

static void release(struct tour *t, const char *step, hf_lock *lock)
{
    hf_error err = {0};

    if (lock != NULL)
        take(t, step, hf_lock_release(lock, &err), 0, &err);
}

static hf_options options(int64_t wait_ms, uint64_t owner)
{
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = TTL_MS;
    opt.wait_ms = wait_ms;
    opt.owner = owner;
    opt.note = "a tour";
    return opt;
}

/* A second thread that waits for a lock until it is handed over or cancelled. */
struct visitor {
    struct tour tour; /* its own `first` */
    hf_cancel *cancel;
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    bool queued, over;
};

static void tell(struct visitor *v, bool *what)
{
    pthread_mutex_lock(&v->mutex);
    *what = true;
    pthread_cond_signal(&v->moved);
    pthread_mutex_unlock(&v->mutex);
}

static void on_wait(size_t position, void *arg)
{
    struct visitor *v = arg;

    (void)position;
    tell(v, &v->queued);
}

static void *visit(void *arg)
{
    struct visitor *v = arg;
    hf_options opt = options(60000, 2);
    hf_lock *lock = NULL;
    hf_error err = {0};

    opt.cancel = v->cancel;
    opt.on_wait = on_wait;
    opt.arg = v;
    int code = hf_acquire(v->tour.client, "door", HF_NTS, &opt, &lock, &err);
    if (code != HF_CANCELLED)
        take(&v->tour, "wait", code, 0, &err);
    release(&v->tour, "release after waiting", lock);
    tell(v, &v->over);
    return NULL;
}

static void hand_over(struct tour *t, hf_lock *lock)
{
    struct visitor v = {
        .tour = *t, .mutex = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    hf_error err = {0};

    int code = hf_cancel_new(&v.cancel);
    if (code == 0 && pthread_create(&thread, NULL, visit, &v) != 0)
        code = HF_SYSTEM;
    if (take(t, "a visitor", code, 0, NULL) != 0) {
        hf_cancel_free(v.cancel);
        release(t, "release", lock);
        return;
    }
    pthread_mutex_lock(&v.mutex);
    while (!v.queued && !v.over)
        pthread_cond_wait(&v.moved, &v.mutex);
    pthread_mutex_unlock(&v.mutex);
    if (take(t, "hand over", hf_lock_release(lock, &err), 0, &err) != 0)
        hf_cancel_fire(v.cancel);
    pthread_join(thread, NULL);
    hf_cancel_free(v.cancel);
    if (t->first == 0)
        t->first = v.tour.first;
}

static void contend(struct tour *t)
{
    hf_options opt = options(0, 1);
    hf_lock *lock = acquire(t, "door", &opt, 0);

    if (lock == NULL)
        return;
    acquire(t, "door", &opt, HF_DEADLOCK);
    opt.owner = 2;
    acquire(t, "door", &opt, HF_BUSY);
    hand_over(t, lock);
}

static void reenter(struct tour *t)
{
    hf_options opt = options(0, 1);

    opt.reentrant = 1;
    hf_lock *outer = acquire(t, "again", &opt, 0);
    if (outer == NULL)
        return;
    hf_lock *inner = acquire(t, "again", &opt, 0);
    if (inner != NULL) {
        assert_ptr_equal(inner, outer);
        release(t, "release the inner", inner);
    }
    assert_int_equal(hf_lock_state(outer), HF_STATE_HELD);
    release(t, "release the outer", outer);
}

/* Looks at what is there and gives how many it saw, or -1. */
static int look(struct tour *t, const char *name)
{
    hf_query query = {.size = sizeof query, .name = name, .name_len = HF_NTS};
    hf_view *view = NULL;
    hf_error err = {0};

    if (take(t, "inspect", hf_inspect(t->client, &query, &view, &err), 0, &err) != 0) {
        assert_null(view);
        return -1;
    }
    int count = (int)hf_view_count(view);
    hf_view_free(view);
    return count;
}

static void share(struct tour *t)
{
    hf_options opt = options(0, 0);
    hf_lock *locks[2] = {NULL};
    size_t held = 0;

    opt.mode = HF_SHARED;
    opt.limit = 2;
    for (size_t i = 0; i < COUNT(locks); i++) {
        opt.owner = i + 1;
        locks[i] = acquire(t, "seats", &opt, 0);
        held += locks[i] != NULL;
    }
    opt.owner = 3;
    if (held == 2)
        acquire(t, "seats", &opt, HF_BUSY);
    int seen = look(t, "seats");
    if (seen >= 0)
        assert_true((size_t)seen >= held);
    for (size_t i = 0; i < COUNT(locks); i++)
        release(t, "release a seat", locks[i]);
}

/* A lock that is asked everything, and then passed on by its ticket. */
static void pass_on(struct tour *t)
{
    hf_options opt = options(0, 1);
    char sequencer[HF_SEQUENCER_MAX], ticket[HF_TICKET_SIZE];
    hf_lock *lock = acquire(t, "baton", &opt, 0);
    hf_error err = {0};

    if (lock == NULL)
        return;
    assert_true(hf_lock_remaining_ms(lock) > 0);
    int fd = hf_lock_fd(lock);
    take(t, "descriptor", fd < 0 ? fd : 0, 0, NULL);
    take(t, "sequencer", hf_lock_sequencer(lock, sequencer, sizeof sequencer), 0, NULL);
    take(t, "check", hf_check(t->client, sequencer, &err), 0, &err);
    take(t, "renew", hf_lock_renew(lock, &err), 0, &err);
    memcpy(ticket, hf_lock_ticket(lock), sizeof ticket);
    if (take(t, "detach", hf_lock_detach(lock, &err), 0, &err) != 0) {
        release(t, "release what was not detached", lock);
        return;
    }
    lock = NULL;
    if (take(t, "adopt", hf_adopt(t->client, "baton", HF_NTS, ticket, &opt, &lock, &err), 0,
             &err) != 0)
        memcpy(t->left_behind, ticket, sizeof ticket);
    release(t, "release what was adopted", lock);
}

static void break_what_is_left(struct tour *t)
{
    hf_error err = {0};

    if (t->left_behind[0] != '\0')
        take(t, "break", hf_break(t->client, "baton", HF_NTS, t->left_behind, 1, &err), 0, &err);
}

static void check_nothing_is_left(const struct scenario *scenario)
{
    hf_client *client;
    hf_view *view;
    hf_error err = {0};

    if (hf_open(scenario->clean_url, NULL, &client, &err) != 0 ||
        hf_inspect(client, NULL, &view, &err) != 0)
        fail_msg("afterwards: %s", err.text);
    for (size_t i = 0; i < hf_view_count(view); i++) {
        const hf_entry *e = hf_view_entry(view, i);
        if (!scenario->may_leave)
            fail_msg("'%s' is still there, place %d, for %lld ms", e->name, (int)e->place,
                     (long long)e->remaining_ms);
        assert_in_range(e->remaining_ms, 0, TTL_MS);
    }
    hf_view_free(view);
    hf_close(client);
}

static void ignore_log(const hf_log_entry *entry, void *arg)
{
    (void)entry, (void)arg;
}

int scenario_run(const struct scenario *scenario)
{
    hf_client_options opt = {.size = sizeof opt, .metrics = 1, .on_log = ignore_log};
    struct tour t = {.scenario = scenario};
    hf_error err = {0};

    if (take(&t, "open", hf_open(scenario->url, &opt, &t.client, &err), 0, &err) == 0) {
        contend(&t);
        reenter(&t);
        share(&t);
        pass_on(&t);
        if (scenario->stop != NULL && scenario->stop_early)
            scenario->stop();
        break_what_is_left(&t);
        hf_close(t.client);
    }
    if (scenario->stop != NULL)
        scenario->stop();
    check_nothing_is_left(scenario);
    return t.first;
}
