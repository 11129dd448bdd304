/* See trail.h. */
#include "doorman/trail.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/banned.h"

static hf_trail_kind ended_by(const struct hf__entry *is, const struct hf__operation *op)
{
    bool own = op->bid != NULL && hf__ticket_equal(&is->ticket, &op->bid->ticket);

    if (own && op->kind == HF__OPERATION_BREAK)
        return HF_TRAIL_BROKEN;
    if (own && op->kind == HF__OPERATION_RELEASE && is->generation != 0)
        return HF_TRAIL_RELEASED;
    return HF_TRAIL_WITHDRAWN;
}

struct hf__change hf__trail_change(const struct hf__entry *was, const struct hf__entry *is,
                                   const struct hf__operation *op, struct hf__moment at)
{
    enum hf__place before = was != NULL ? was->place : HF__PLACE_GONE;
    int64_t since_ms = was != NULL ? was->since_ms : at.now_ms, at_ms = at.now_ms;
    bool open = before == HF__PLACE_INSIDE || before == HF__PLACE_WAITING;
    bool overdue = open && was->until_ms <= at.now_ms; /* the sweep comes first */
    struct hf__change change = {.cause = ""};

    if (overdue) {
        at_ms = was->until_ms;
        change.kind = before == HF__PLACE_INSIDE ? HF_TRAIL_LOST : HF_TRAIL_VANISHED;
    } else if (before != HF__PLACE_INSIDE && is->place == HF__PLACE_INSIDE) {
        change.kind = HF_TRAIL_GRANTED;
    } else if (open && is->place != before) {
        change.kind = ended_by(is, op);
    }
    if (change.kind == HF_TRAIL_LOST)
        change.cause = was->claimed ? "expired" : "unclaimed";
    change.wall_ms = (int64_t)(at.stamp_us / 1000) - (at.now_ms - at_ms);
    change.span_ms = at_ms > since_ms ? at_ms - since_ms : 0;
    if (change.kind == HF_TRAIL_GRANTED && change.span_ms == 0)
        change.kind = 0;
    return change;
}

void hf__trail_breaker(const struct hf__who *self, char buf[HF__TRAIL_CAUSE_MAX])
{
    snprintf(buf, HF__TRAIL_CAUSE_MAX, "%.127s@%.127s, pid %" PRId64 ", %.127s", self->user,
             self->host, self->pid, self->program);
}
