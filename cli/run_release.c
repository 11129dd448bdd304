/* How `run` gives the lock back, and bears an outage of the store while it does. See run.c. */
#include <poll.h>
#include <string.h>

#include "run_inside.h"

#include "base/banned.h"

#define OUTAGE_MS \
    5000 /* of the store, at the end: as long as an acquire bears one unless told otherwise */
#define LOOK_MS 50

static void tell_unreleased(struct run *r, const hf_error *err)
{
    char hold[80];

    cli_describe_hold(r->status.may_hold_ms, hold, sizeof hold);
    cli_fail(0, "'%s' may not have been released%s: %s", r->shown, hold, err->text);
}

/* Whether the store says that this ticket is not inside. False if it does not say anything. */
static bool is_outside(struct run *r, const char *ticket)
{
    hf_query query = {.size = sizeof query, .name = r->set->name, .name_len = HF_NTS};
    const hf_entry *e;
    hf_view *view;
    bool inside = false;

    if (hf_inspect(r->client, &query, &view, NULL) != HF_OK)
        return false;
    for (size_t i = 0; (e = hf_view_entry(view, i)) != NULL; i++)
        inside |= e->place == HF_PLACE_INSIDE && strcmp(e->ticket, ticket) == 0;
    hf_view_free(view);
    return !inside;
}

/* A release that was not answered is tried again by the library for as long as we are here. So a
 * short outage is waited for. What is outside before its lease can have ended was released. */
static void await_release(struct run *r, const char *ticket)
{
    struct status *status = &r->status;
    bool ends = status->may_hold_ms != HF_NEVER;
    int64_t began_ns = run_now_ns();
    int64_t most_ms = ends && status->may_hold_ms < OUTAGE_MS ? status->may_hold_ms : OUTAGE_MS;

    while (status->release == HF_UNKNOWN && run_now_ns() - began_ns < most_ms * HF__NS_PER_MS) {
        if (is_outside(r, ticket))
            status->release = HF_OK;
        else
            poll(NULL, 0, LOOK_MS);
    }
    int64_t left_ms = status->may_hold_ms - (run_now_ns() - began_ns) / HF__NS_PER_MS;
    if (status->release == HF_OK)
        status->may_hold_ms = 0;
    else if (ends)
        status->may_hold_ms = left_ms > 0 ? left_ms : 0;
}

static int64_t at_least_ms(const struct run *r)
{
    bool counts = r->set->once ? run_ended_well(r) : r->status.started;

    return counts ? r->set->at_least_ms : 0;
}

void run_release(struct run *r)
{
    char ticket[HF_TICKET_SIZE];
    hf_error err = {0};

    if (!r->lock)
        return;
    r->status.held_ms = ((r->lost_ns ? r->lost_ns : run_now_ns()) - r->obtained_ns) / HF__NS_PER_MS;
    if (r->leash.cause != HF_CAUSE_NONE) {
        r->status.lost = true;
        r->status.cause = r->leash.cause;
    } else if (run_cause(r) != HF_CAUSE_NONE) {
        r->status.lost = true;
        r->status.cause = run_cause(r);
        run_explain(r, r->status.cause);
    }
    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(r->lock));
    r->status.release = run_release_all(r, at_least_ms(r), &err);
    if (r->status.release == HF_STALE && !r->status.lost) {
        r->status.lost = true;
        r->status.cause = HF_CAUSE_GONE;
        run_explain(r, r->status.cause);
    }
    if (r->status.release == HF_UNKNOWN)
        r->status.may_hold_ms = err.may_hold_ms;
    if (r->status.release == HF_UNKNOWN && !r->status.lost)
        await_release(r, ticket);
    if (r->status.release != HF_OK && !r->status.lost)
        tell_unreleased(r, &err);
}
