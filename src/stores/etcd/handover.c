/* The direct hand-over: a release that lets in the next one, so that nobody has to ask afterwards.
 *
 * A writer that stands right behind another of ours tells its client so:
 *
 *   if      both places are the ones that were seen
 *   then    put slot/<lease of the one before>, put next/<inbox>/<the same>, both on that lease
 *
 * Each client watches its inbox, and so learns who is next. Who is next once is so for good, or
 * goes: nobody comes between two places, whose order is that of their creation. The release is then
 *
 *   if      our mark is as we know it, the next one's place is still the same
 *   then    delete place, inside; put the next one's inside                  DONE, and GRANTED
 *
 * Whoever releases was inside alone, so the next one is first as soon as that place is gone, and its
 * own place is looked at in the same step, as in questions.c. It watches its own mark: one event tells
 * it, with the revision that is its generation. It watches the slot as well, which a hand-over leaves
 * alone: a release that knows of nobody deletes it, and whatever else ends a place ends the lease on
 * which the slot hangs. That is a hint to ask, as with any other watch.
 *
 * The mark stands for all that a release must know of its own state: it goes with the place, and a
 * break changes it (break.c). Only a stranger who deletes the place by hand leaves it behind. Then the
 * release finds no place to delete, and says so; the next one, who is first, is let in all the same,
 * or is inside already and has a mark, which this puts once more. That is no grant: a mark that was
 * handed has no value, is younger than its place, and was put once. Whether its bidder lives is not
 * known yet. Until it is claimed (renew.c) the next in line removes it like a waiter, if it has been
 * silent for as long.
 *
 * Readers are not told: several enter together, and each needs a generation of its own. Nor are
 * strangers, who know no slots; behind them the place itself is watched. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/etcd/attempt.h"

#include "base/banned.h"

static bool names(const struct hf__etcd_record *r, const char *field, struct hf__ticket *ret_ticket)
{
    const char *text = hf__etcd_record_text(r, field);

    return text != NULL && hf__ticket_parse(text, ret_ticket);
}

bool hf__etcd_is_handed(const struct hf__etcd_kv *mark, uint64_t joined)
{
    return mark != NULL && mark->created > joined && mark->created == mark->put &&
           mark->value.len == 0;
}

/* Standing behind somebody. -------------------------------------------------------------------- */

/* The slot of the one before us, if it is a writer of ours that hangs on its own lease. */
static bool find_slot(const struct hf__etcd_attempt *a, const struct hf__etcd_seen *s,
                      struct hf__etcd_key *ret_slot)
{
    struct hf__etcd_key *place = malloc(sizeof *place);
    bool found = false;

    if (place != NULL && a->bid->mode == HF_EXCLUSIVE && s->before_ours && s->before_lease != 0 &&
        s->before_inbox[0] != '\0') {
        hf__etcd_place_key(a->e, a->name, HF_EXCLUSIVE, s->before_lease, place);
        found =
            place->len == s->before.len && memcmp(place->bytes, s->before.bytes, place->len) == 0;
        hf__etcd_slot_key(a->e, s->before_lease, ret_slot);
    }
    free(place);
    return found;
}

static int announce(struct hf__etcd_attempt *a, const struct hf__etcd_seen *s,
                    const struct hf__etcd_key *slot, struct hf__etcd_answer *ret_answer)
{
    struct hf__etcd_key *inbox = malloc(sizeof *inbox);
    struct hf__etcd_txn t = {.incomplete = inbox == NULL};
    char to[HF_TICKET_SIZE], ticket[HF_TICKET_SIZE], value[200];

    hf__ticket_format(&s->before_ticket, to);
    hf__ticket_format(&a->bid->ticket, ticket);
    snprintf(value, sizeof value,
             "{\"to\":\"%s\",\"next\":\"%s\",\"lease\":\"%" PRId64 "\",\"joined\":\"%" PRIu64 "\"}",
             to, ticket, a->lease, s->joined);
    hf__etcd_compare(&t, &s->before, s->before_joined);
    hf__etcd_compare(&t, &a->place, s->joined);
    hf__etcd_put(&t, slot, "", s->before_lease);
    if (inbox != NULL) {
        hf__etcd_next_key(a->e, s->before_inbox, s->before_lease, inbox);
        hf__etcd_put(&t, inbox, value, s->before_lease);
    }
    free(inbox);
    return hf__etcd_commit(a->e, &t, a->deadline_ns, ret_answer, a->err);
}

int hf__etcd_stand_behind(struct hf__etcd_attempt *a, const struct hf__etcd_seen *s)
{
    struct hf__etcd_key *slot = malloc(sizeof *slot);
    struct hf__etcd_answer answer = {0};
    int r = 0;

    if (slot == NULL)
        return hf__fail(a->err, HF_NO_MEMORY, NULL);
    if (!hf__etcd_listens(a->e) || !find_slot(a, s, slot)) {
        hf__etcd_watch(a->e, &a->bid->ticket,
                       &(struct hf__etcd_to_watch){.before = &s->before, .from = s->revision + 1});
    } else if (!hf__etcd_watches(a->e, &a->bid->ticket, slot)) {
        r = announce(a, s, slot, &answer);
        if (r == 0 && answer.succeeded)
            hf__etcd_watch(a->e, &a->bid->ticket,
                           &(struct hf__etcd_to_watch){
                               .before = slot, .mark = &a->inside, .from = answer.revision + 1});
        else if (r == 0 || r == HF_NOT_FOUND) /* one of the two places is gone */
            r = 1;
    }
    hf__etcd_answer_clear(&answer);
    free(slot);
    return r;
}

/* Standing before somebody. -------------------------------------------------------------------- */
void hf__etcd_note_next(struct hf__etcd *e, const struct hf__etcd_kv *kv)
{
    struct hf__etcd_record said;
    struct hf__etcd_next next;
    struct hf__ticket to;

    if (hf__etcd_record_read(kv->value, &said) && names(&said, "to", &to) &&
        names(&said, "next", &next.ticket)) {
        next.lease = hf__etcd_record_number(&said, "lease");
        next.joined = (uint64_t)hf__etcd_record_number(&said, "joined");
        hf__etcd_bid_set_next(e, &to, &next);
    }
    hf__etcd_record_clear(&said);
}

bool hf__etcd_can_hand_over(const struct hf__etcd_bid *b)
{
    return b->next.joined != 0 && b->mode == HF_EXCLUSIVE && !b->lease_dropped;
}
