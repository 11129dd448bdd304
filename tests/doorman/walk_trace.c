/* Moves and worlds in words, for the trace that leads to a violation. */
#include "walk.h"

#include <stdio.h>

static const char *const kind_name[] = {
    [ATTEMPT] = "attempt",
    [RENEW] = "renewal",
    [WITHDRAW] = "withdraw",
    [RELEASE] = "release",
    [WRITE] = "write",
    [ATTEMPT_ANSWER] = "answer to the attempt",
    [RENEW_ANSWER] = "answer to the renewal",
    [WRITE_ANSWER] = "answer to the write",
    [WAKE] = "wake-up",
};
static const char *const verdict_name[] = {
    [HF__VERDICT_GRANTED] = "granted", [HF__VERDICT_QUEUED] = "queued",
    [HF__VERDICT_BUSY] = "busy",       [HF__VERDICT_WITHDRAWN] = "withdrawn",
    [HF__VERDICT_FULL] = "full",       [HF__VERDICT_DONE] = "done",
    [HF__VERDICT_STALE] = "stale",     [HF__VERDICT_GONE] = "lost",
    [HF__VERDICT_MORE] = "more",
};
static const char *const place_name[] = {
    [HF__PLACE_GONE] = "gone",       [HF__PLACE_WAITING] = "waiting",
    [HF__PLACE_INSIDE] = "inside",   [HF__PLACE_LINGERING] = "lingering",
    [HF__PLACE_RETIRED] = "retired",
};
static const char *const phase_name[] = {
    [HF__PHASE_ASKING] = "asking",   [HF__PHASE_WAITING] = "queueing",
    [HF__PHASE_HOLDING] = "HOLDING", [HF__PHASE_LOST] = "lost",
    [HF__PHASE_OVER] = "over",
};
static const char *const act_text[] = {
    [ASK] = "sends an attempt",
    [SIGN_OF_LIFE] = "sends a renewal",
    [GIVE_UP] = "gives up, sends a withdraw",
    [LET_GO] = "releases",
    [UNLOCK] = "'s waiting ticket is released by a person",
    [SEND_AGAIN] = "sends the withdraw or release again",
    [READ_VALUE] = "reads the value",
    [WRITE_VALUE] = "writes the value",
    [KEEP_IDLE] = "releases, but keeps it",
    [USE_AGAIN] = "takes what it has kept",
    [BID_ANEW] = "bids anew with its next ticket",
    [DIE] = "dies",
};

/* Ticket 0 is A, and A's second one A2. */
static void print_ticket(uint8_t t)
{
    printf("%c%s", 'A' + client_of(t), t % MAX_BIDS == 0 ? "" : "2");
}

static void print_message(const struct message *m)
{
    printf("%s of ", kind_name[m->kind]);
    print_ticket(m->ticket);
    if (m->kind == RENEW || (m->kind == RELEASE && m->named != 0))
        printf(" (names %u)", (unsigned)m->named);
    if (m->kind == WRITE)
        printf(" (names %u, order %u)", (unsigned)m->named, (unsigned)m->order);
    if (m->kind == WAKE)
        printf(" (generation %u)", (unsigned)m->generation);
    else if (m->kind >= ATTEMPT_ANSWER)
        printf(" (%s%s, generation %u)", verdict_name[m->verdict], m->claimed ? " and claimed" : "",
               (unsigned)m->generation);
    if (m->retire)
        printf(" (retires)");
    if (m->kind != WAKE)
        printf(" sent %u ago%s", (unsigned)m->age, m->late ? ", given up" : "");
}

void print_move(const struct scenario *s, const struct world *before, struct move m)
{
    (void)s;
    switch ((enum move_kind)m.kind) {
    case TICK:
        printf("a tick passes");
        break;
    case STEP_BACK:
        printf("the store's clock steps back");
        break;
    case SWEEP:
        printf("some other request makes the store look at the time");
        break;
    case BREAK:
    case BREAK_NOW:
        printf("somebody breaks ");
        print_ticket(m.arg);
        printf("%s", m.kind == BREAK_NOW ? " now" : "");
        break;
    case DELIVER:
    case DELIVER_COPY:
    case LOSE:
        printf("%s: ", m.kind == LOSE      ? "lost"
                       : m.kind == DELIVER ? "arrives"
                                           : "arrives, not for the last time");
        print_message(&before->message[m.arg]);
        break;
    default:
        print_ticket(ticket_of(before, m.arg));
        printf(" %s", act_text[m.kind]);
    }
    printf("\n");
}

static void print_entry(const struct scenario *s, const struct hf__entry *e)
{
    printf("      ");
    print_ticket(ticket_number(&e->ticket));
    printf(" %s", place_name[e->place]);
    if (e->generation != 0)
        printf(" generation %llu", (unsigned long long)e->generation);
    if (e->until_ms == HF__NEVER)
        printf(", never expires");
    else
        printf(", %lld ticks left", (long long)((e->until_ms - NOW_MS) / s->tick_ms));
    printf("%s\n", e->claimed ? ", claimed" : "");
}

void print_world(const struct scenario *s, const struct world *w)
{
    printf("    store: generation %llu\n", (unsigned long long)w->generation);
    if (w->value_generation != 0 || w->doubt)
        printf("      value of %llu, order %u%s\n", (unsigned long long)w->value_generation,
               (unsigned)w->value_order, w->doubt ? ", in doubt" : "");
    for (size_t i = 0; i < w->entry_count; i++)
        print_entry(s, &w->entries[i]);
    for (int c = 0; c < s->clients; c++) {
        const struct hf__bidder *b = &w->client[c].bidder;
        printf("    client ");
        print_ticket(ticket_of(w, c));
        printf(": %s", w->client[c].alive ? phase_name[b->phase] : "dead");
        if (b->phase == HF__PHASE_HOLDING && b->deadline_ns != INT64_MAX)
            printf(" generation %llu until %.2f ticks from now", (unsigned long long)b->generation,
                   (double)(b->deadline_ns - NOW_NS) / 1e6 / (double)s->tick_ms);
        printf("\n");
    }
    for (size_t i = 0; i < w->message_count; i++) {
        printf("    under way: ");
        print_message(&w->message[i]);
        printf("\n");
    }
}
