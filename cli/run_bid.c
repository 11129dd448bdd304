/* How `run` obtains the lock, and what it says while it waits. See run.c. */
#include "run_inside.h"

#include <sys/eventfd.h>

#include "entry.h"
#include "environment.h"
#include "progress.h"
#include "signals.h"

#include "base/banned.h"

/* A reader inside a reader is let in like any other, if that needs no wait: the outer one cannot
 * leave before the inner one does. */
static int refuse_nested(struct run *r)
{
    enum environment_hold held = environment_holds(r->client, r->url, r->set->name);

    for (size_t i = 0; i < r->set->with->count && held == ENVIRONMENT_FREE; i++) {
        if (environment_holds(r->client, r->url, r->set->with->names[i]) != ENVIRONMENT_FREE)
            held = ENVIRONMENT_EXCLUSIVE;
    }
    r->inside_a_reader = held == ENVIRONMENT_SHARED && r->set->mode == HF_SHARED;
    if (held == ENVIRONMENT_FREE || r->inside_a_reader)
        return 0;
    return cli_fail(hf_code_exit_status(HF_DEADLOCK),
                    "this command already runs under '%s' (HOLDFAST_HELD) and would wait for "
                    "itself; drop the inner 'run', or give it another name",
                    r->shown);
}

/* The leash kills the command at max-hold, while the lock is still ours, and whatever it may not
 * kill keeps the lock. So the library's own cap, which needs a lease, is for the other policies
 * only: with on-lost ignore it is all there is, with on-lost term it follows the signal. */
static int64_t library_max_hold_ms(const struct run_settings *set)
{
    if (set->max_hold_ms == 0 || set->policy == LEASH_IGNORE)
        return set->max_hold_ms;
    if (set->policy == LEASH_KILL || set->ttl_ms == HF_NEVER)
        return 0;
    return set->max_hold_ms + 2 * (set->kill_after_ms + set->margin_ms) + 1000;
}

static void tell_waiting(size_t position, void *arg)
{
    struct run *r = arg;

    progress_tell(position, r->progress);
}

/* On a thread of the library, beside the command. */
static void tell_at_risk(hf_lock *lock, hf_cause cause, void *arg)
{
    struct run *r = arg;
    int64_t left_ms = hf_lock_remaining_ms(lock);
    hf_error err = {.text = "the store has not answered"};

    (void)cause;
    hf_lock_error(lock, &err);
    status_notice("'%s' could not be renewed yet: %s; its lease ends in %lld.%lld s", r->shown,
                  err.text, (long long)(left_ms / 1000), (long long)(left_ms % 1000 / 100));
}

/* Likewise. Whoever watches the command passes it on. */
static void tell_wanted(hf_lock *lock, hf_cause cause, void *arg)
{
    struct run *r = arg;

    (void)lock, (void)cause;
    eventfd_write(r->wanted_fd, 1);
}

static int bid(struct run *r, hf_error *err)
{
    const struct run_settings *set = r->set;
    hf_options options = {
        .size = sizeof options,
        .mode = set->mode,
        .limit = set->limit,
        .ttl_ms = set->ttl_ms,
        .wait_ms = r->inside_a_reader ? 0 : set->wait_ms,
        .patience_ms = set->patience_ms,
        .lock_delay_ms = set->lock_delay_ms,
        .max_hold_ms = library_max_hold_ms(set),
        .confirmed = 1,
        .note = set->note,
        .cancel = r->cancel,
        .on_at_risk = r->cli->quiet ? NULL : tell_at_risk,
        .on_wait = tell_waiting,
        .on_wanted = set->wanted_signal != 0 ? tell_wanted : NULL,
        .arg = r,
    };
    int64_t began_ns = run_now_ns();

    r->progress = r->cli->quiet ? NULL : progress_new(r->client, set->name);
    int code = run_acquire_all(r, &options, err);
    r->obtained_ns = run_now_ns();
    r->status.waited_ms = (r->obtained_ns - began_ns) / HF__NS_PER_MS;
    progress_free(r->progress);
    return code;
}

static int fail_bid(struct run *r, int code, const hf_error *err)
{
    if (code == HF_UNKNOWN)
        r->status.may_hold_ms = err->may_hold_ms;
    if (code == HF_CANCELLED && signals_first_ending() != 0)
        return 128 + signals_first_ending();
    if (code != HF_BUSY && code != HF_TIMEOUT)
        return cli_fail_error(err);
    if (r->set->once) /* it is done, or being done */
        return 0;
    if (r->inside_a_reader && r->set->wait_ms != 0)
        return cli_fail(hf_code_exit_status(HF_DEADLOCK),
                        "this command already runs under '%s' (HOLDFAST_HELD), and others wait for "
                        "it or it is full: to share it once more it would wait for itself",
                        r->shown);
    if (!r->cli->quiet)
        cli_fail_conflict(0, err, r->client, r->set->name);
    return r->set->conflict_status;
}

int run_acquire(struct run *r)
{
    hf_error err = {0};
    int status = refuse_nested(r);

    if (status != 0)
        return status;
    int code = bid(r, &err);
    if (code != HF_OK)
        return fail_bid(r, code, &err);
    r->status.obtained = true;
    hf_lock_generation(r->lock, &r->status.generation);
    /* The signal came too late to end the wait, but before the command was there to get it. */
    signals_forget_ending();
    return signals_first_ending() ? 128 + signals_first_ending() : 0;
}

int run_freshen(struct run *r)
{
    int64_t needed_ms = r->set->kill_after_ms + r->set->margin_ms;

    if (r->set->policy == LEASH_IGNORE || run_remaining_ms(r) > needed_ms)
        return 0;
    run_renew(r);
    if (run_remaining_ms(r) > needed_ms)
        return 0;
    r->status.lost = true;
    r->status.cause = HF_CAUSE_EXPIRED;
    return cli_fail(EXIT_LOCK_LOST,
                    "'%s' was obtained too late: its lease is too short for this store", r->shown);
}
