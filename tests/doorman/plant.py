#!/usr/bin/env python3
"""Plants the bugs that the exhaustive walk must find, in copies of the rules: nobody who reads
src/doorman meets them. Each is off until `hf__planted` names it.

    plant.py header       prints the list of bugs, as a header
    plant.py FILE.c       prints that file with its bugs in it

A bug whose place is no longer in the file is an error: this table must follow the sources."""

import os
import sys

# name, file, what is there, what stands there instead; PLANTED is true while the bug is switched on.
BUGS = [
    ("READER_PASSES_WRITER", "doorman.c",
     "        if (!fits(e, &in))\n            return true;\n",
     "        if (!fits(e, &in) && PLANTED)\n            continue;\n        if (!fits(e, &in))\n            return true;\n"),
    ("GENERATION_KEPT_ON_HANDOVER", "doorman.c",
     "    record->generation = next > at.stamp_us ? next : at.stamp_us;\n",
     "    if (!PLANTED || knows)\n        record->generation = next > at.stamp_us ? next : at.stamp_us;\n"),
    ("DEAD_WAITER_BLOCKS_HEAD", "doorman.c",
     "    while (e->place != HF__PLACE_GONE && e->until_ms <= now_ms) {\n",
     "    while (e->place != HF__PLACE_GONE && e->until_ms <= now_ms) {\n"
     "        if (PLANTED && e->place == HF__PLACE_WAITING)\n            return;\n"),
    ("LATE_ATTEMPT_AFTER_WITHDRAW", "doorman.c",
     "end_bid(record, &op->bid->ticket, op->retire_ms, true, at.now_ms)",
     "end_bid(record, &op->bid->ticket, PLANTED ? 0 : op->retire_ms, true, at.now_ms)"),
    ("DELAY_SKIPPED", "doorman.c",
     "bool linger = e->claimed && e->lock_delay_ms > 0;",
     "bool linger = e->claimed && e->lock_delay_ms > 0 && !PLANTED;"),
    ("DELAY_AFTER_UNCLAIMED", "doorman.c",
     "bool linger = e->claimed && ", "bool linger = (e->claimed || PLANTED) && "),
    ("DELAY_OUTLIVES_WITHDRAW", "doorman.c",
     "op->retire_ms, true, at.now_ms)", "op->retire_ms, !PLANTED, at.now_ms)"),
    ("DELAY_ENDED_BY_RELEASE", "doorman.c",
     "op->retire_ms, false, at.now_ms)", "op->retire_ms, PLANTED, at.now_ms)"),
    ("WRONG_TICKET_RELEASES", "doorman.c",
     "    enum hf__place was;\n\n    note_used(",
     "    for (size_t i = 0; PLANTED && i < record->count; i++) {\n"
     "        if (record->entries[i].place == HF__PLACE_INSIDE)\n"
     "            ticket = &record->entries[i].ticket;\n    }\n"
     "    enum hf__place was;\n\n    note_used("),
    ("LIMIT_OFF_BY_ONE", "doorman.c", "in->count < limit;", "in->count < limit + (PLANTED ? 1 : 0);"),
    ("EXPIRED_HOLDER_RENEWS", "doorman.c",
     "    sweep(record, at.now_ms);\n    switch (op->kind) {\n",
     "    struct hf__entry *renewed =\n"
     "        PLANTED && op->kind == HF__OPERATION_RENEW ? hf__record_find(record, &op->bid->ticket) : NULL;\n"
     "    if (renewed != NULL && renewed->place == HF__PLACE_INSIDE)\n"
     "        give(renewed, at.now_ms, renewed->lease_ms);\n"
     "    sweep(record, at.now_ms);\n    switch (op->kind) {\n"),
    ("STALE_WAKE_BELIEVED", "bidder.c",
     "    if (!fresh)\n", "    if (PLANTED)\n        fresh = generation > 0;\n    if (!fresh)\n"),
    ("LATE_WAKE_BELIEVED", "bidder.c", ".sent_ns = b->queued_sent_ns,", ".sent_ns = PLANTED ? now_ns : b->queued_sent_ns,"),
    ("ATTEMPT_KEEPS_OLD_LEASE", "doorman.c",
     "    else if (e->place == HF__PLACE_INSIDE)\n        give(e, at.now_ms, e->lease_ms);\n",
     "    else if (e->place == HF__PLACE_INSIDE && !PLANTED)\n        give(e, at.now_ms, e->lease_ms);\n"),
    ("SHORTER_DELAY_OVERWRITES", "doorman.c",
     "        leave(e, e->retire_ms, at.now_ms);\n    }\n    if (!let_in(",
     "        leave(e, e->retire_ms, at.now_ms);\n    }\n"
     "    for (size_t i = 0; PLANTED && found && i < record->count; i++) {\n"
     "        struct hf__entry *other = &record->entries[i];\n"
     "        if (other->place == HF__PLACE_LINGERING && other->until_ms > e->until_ms)\n"
     "            give(other, at.now_ms, e->until_ms - at.now_ms);\n    }\n    if (!let_in("),
    ("EARLY_RENEWAL_CLAIMS", "doorman.c",
     "bool names_it = inside && op->generation == e->generation;",
     "bool names_it = inside && (op->generation == e->generation || (PLANTED && op->generation == 0));"),
    ("EXPIRED_TICKET_LET_IN_AGAIN", "doorman.c",
     "        leave(e, e->retire_ms, e->until_ms);\n    }\n}\n",
     "        leave(e, PLANTED ? 0 : e->retire_ms, e->until_ms);\n    }\n}\n"),
    ("WAITING_RELEASE_IGNORED", "doorman.c",
     "    const struct hf__ticket *ticket = &op->bid->ticket;\n",
     "    const struct hf__ticket *ticket = &op->bid->ticket;\n"
     "    const struct hf__entry *waiter = PLANTED ? hf__record_find(record, ticket) : NULL;\n"
     "    if (waiter != NULL && waiter->place == HF__PLACE_WAITING)\n        return answer(HF__VERDICT_STALE);\n"),
    ("PROVISIONAL_NEVER_CUT", "doorman.c",
     "    if (e->until_ms != HF__NEVER && e->until_ms - now_ms > e->lease_ms)\n        give(e, now_ms, e->lease_ms);",
     "    int64_t span_ms = PLANTED && e->ttl_ms == HF__NEVER && e->place == HF__PLACE_INSIDE ? 0 : e->lease_ms;\n"
     "    if (e->until_ms != HF__NEVER && e->until_ms - now_ms > span_ms)\n        give(e, now_ms, span_ms);"),
    ("DEADLINE_FROM_RECEIPT", "bidder.c", "believe(b, from->sent_ns, from->lease_ms,", "believe(b, PLANTED ? now_ns : from->sent_ns, from->lease_ms,"),
    ("AT_LEAST_IGNORED", "doorman.c", "op->at_least_ms > 0 ?", "op->at_least_ms > 0 && !PLANTED ?"),
    ("AT_LEAST_FROM_THE_RELEASE", "doorman.c",
     "    give(e, e->since_ms, op->at_least_ms);", "    give(e, PLANTED ? now_ms : e->since_ms, op->at_least_ms);"),
    ("LINGERING_ENDED_BY_BREAK", "doorman.c",
     "(e->place == HF__PLACE_WAITING || op->now))", "(e->place == HF__PLACE_WAITING || op->now || PLANTED))"),
    ("HOLDERS_NOT_CALLED", "doorman.c", "    if (is_new || !bid->queue)\n", "    if ((is_new || !bid->queue) && !PLANTED)\n"),
    ("NO_WAIT_CALLS_NOBODY", "doorman.c", "e->tell && (waits || e->cached);", "e->tell && (waits || (e->cached && !PLANTED));"),
    ("NUMBERS_NOT_RESERVED", "doorman.c", "    if (e->cached)\n        give_numbers(", "    if (e->cached && !PLANTED)\n        give_numbers("),
    ("USED_NUMBERS_FORGOTTEN", "doorman.c", "    if (knows && op->generation", "    if (knows && !PLANTED && op->generation"),
    ("HOLDERS_CALLED_EACH_TIME", "doorman.c", "        e->told = true;\n", "        e->told = !PLANTED;\n"),
    ("TOLD_NEVER_FORGOTTEN", "doorman.c", "    if (e->told && !a.wanted) {", "    if (e->told && !a.wanted && !PLANTED) {"),
    ("GRANT_DOES_NOT_SAY_WANTED", "doorman.c", ".wanted = e->tell && somebody_waits(record)}",
     ".wanted = e->tell && !PLANTED && somebody_waits(record)}"),
    ("VALUE_WITHOUT_ORDER", "doorman.c", "    if (may_write && !is_old) {", "    if (may_write && (!is_old || PLANTED)) {"),
    ("VALUE_BY_A_READER", "doorman.c",
     "bool may_write = e != NULL && e->mode == HF_EXCLUSIVE;", "bool may_write = e != NULL && (e->mode == HF_EXCLUSIVE || PLANTED);"),
    ("NO_DOUBT_AFTER_EXPIRY", "doorman.c",
     "            note_end(record, e);\n            expire(e);", "            if (!PLANTED)\n                note_end(record, e);\n            expire(e);"),
    ("NO_DOUBT_AFTER_BREAK", "doorman.c",
     "        note_end(record, e);\n        break_inside(", "        if (!PLANTED)\n            note_end(record, e);\n        break_inside("),
    ("READING_DOES_NOT_OPEN", "doorman.c", "    if (e != NULL)\n        open_value(e);", "    if (e != NULL && !PLANTED)\n        open_value(e);"),
    ("DOUBT_OUTLIVES_A_WRITE", "doorman.c", "        record->doubt = false;\n", "        record->doubt &= PLANTED;\n"),
    ("EARLY_ANSWER_COUNTS", "bidder.c",
     "    if (!knew)\n        return HF__ADVICE_NOTHING;\n", "    if (!knew && !PLANTED)\n        return HF__ADVICE_NOTHING;\n"),
]


def header():
    """A macro that lists them, and a number for each."""
    print("#define PLANTABLE(X) " + " ".join(f"X({name})" for name, *_ in BUGS))
    print("enum planted { NOTHING_PLANTED, " + ", ".join(f"PLANT_{name}" for name, *_ in BUGS) + " };")
    print("extern enum planted planted;")
    print("#define PLANTED(bug) (planted == PLANT_##bug)")


def planted(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for name, file, before, after in BUGS:
        if file != os.path.basename(path):
            continue
        if text.count(before) != 1:
            sys.exit(f"plant.py: {name}: its place is {text.count(before)} times in {path}")
        text = text.replace(before, after.replace("PLANTED", f"PLANTED({name})"))
    print('#include "planted.h"')
    print(text, end="")


if __name__ == "__main__":
    header() if sys.argv[1] == "header" else planted(sys.argv[1])
