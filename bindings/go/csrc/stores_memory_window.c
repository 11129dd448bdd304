/* See window.h. Entries are copied out and back, so a window that was too small is simply dropped. */
#include "stores_memory_window.h"

#include <stdlib.h>

#include "base_banned.h"

#define COUNTABLE_MAX 1000 /* beyond it a place in the queue is not worth its cost */

/* Room for one more than is in it, and for the one that the doorman may add. */
static bool reserve(struct window *w)
{
    struct space *space = w->space;
    size_t capacity = space->capacity < 8 ? 8 : 2 * space->capacity;

    if (w->record.count + 2 > space->capacity) {
        void *entries = realloc(space->entries, capacity * sizeof *space->entries);
        if (entries != NULL)
            space->entries = entries;
        void *members = realloc(space->members, capacity * sizeof(*space->members));
        if (members != NULL)
            space->members = members;
        if (entries == NULL || members == NULL)
            return false;
        space->capacity = capacity;
    }
    w->record.entries = space->entries;
    w->record.capacity = space->capacity;
    return true;
}

static bool take(struct window *w, struct member *member)
{
    if (member->loaded == w->space->windows)
        return true;
    if (!reserve(w))
        return false;
    member->loaded = w->space->windows;
    w->space->members[w->record.count] = member;
    w->record.entries[w->record.count++] = member->entry;
    return true;
}

static struct member *find_waiter(const struct window *w)
{
    uint64_t hash = hf__hash(w->space->seed, w->ticket->bits, sizeof w->ticket->bits);
    struct hf__link *link = hf__table_find(&w->space->waiters, hash);

    for (; link != NULL; link = hf__table_next(link)) {
        struct member *member =
            (struct member *)((char *)link - offsetof(struct member, by_ticket));
        if (member->room == w->room && hf__ticket_equal(&member->entry.ticket, w->ticket))
            return member;
    }
    return NULL;
}

/* A heap has none before its father: whoever is not due ends the search below him. */
static bool take_due(struct window *w, size_t i)
{
    const struct hf__heap *due = &w->room->due;

    if (i >= due->count || due->timers[i]->when_ns > w->now_ms)
        return true;
    return take(w, (struct member *)((char *)due->timers[i] - offsetof(struct member, due))) &&
           take_due(w, 2 * i + 1) && take_due(w, 2 * i + 2);
}

bool hf__window_load(struct window *w)
{
    struct room *room = w->room;
    struct member *subject = w->ticket != NULL ? find_waiter(w) : NULL;
    size_t seen = 0;

    w->record.count = 0;
    /* Whoever finds nobody is let in, and needs no place in the queue. */
    bool may_queue = w->newcomer != NULL && (room->present.first != NULL || room->waiting > 0);
    bool room_for_all =
        reserve(w) && (!may_queue || hf__heap_reserve(&room->due, room->waiting + 1));

    w->space->windows++;
    w->record.generation = room->generation;
    w->record.doubt = false;
    if (room->value != NULL) {
        w->record.value_generation = room->value->generation;
        w->record.value_order = room->value->order;
        w->record.doubt = room->value->doubt;
    }
    for (struct member *m = room->present.first; room_for_all && m != NULL; m = m->next)
        room_for_all = take(w, m);
    for (struct member *m = room->queue.first; room_for_all && m != NULL && seen < w->waiters;
         m = m->next, seen++)
        room_for_all = take(w, m);
    size_t behind = w->record.count; /* whoever comes now stands behind those who are left out */
    room_for_all = room_for_all && take_due(w, 0);
    if (room_for_all && subject != NULL)
        room_for_all = take(w, subject);
    w->record.unseen = room->waiting - seen - (w->record.count - behind);
    w->record.gap = behind;
    return room_for_all;
}

/* Writing back. -------------------------------------------------------------------------------- */
static void append(struct members *list, struct member *m)
{
    m->next = NULL;
    m->prev = list->last;
    *(list->last != NULL ? &list->last->next : &list->first) = m;
    list->last = m;
}

static void unlink_member(struct members *list, struct member *m)
{
    *(m->prev != NULL ? &m->prev->next : &list->first) = m->next;
    *(m->next != NULL ? &m->next->prev : &list->last) = m->prev;
}

static void leave_queue(struct window *w, struct member *m)
{
    unlink_member(&w->room->queue, m);
    hf__table_remove(&w->space->waiters, &m->by_ticket);
    hf__heap_remove(&w->room->due, &m->due);
    w->room->waiting--;
}

static void join_queue(struct window *w, struct member *m)
{
    append(&w->room->queue, m);
    hf__table_add(&w->space->waiters, &m->by_ticket,
                  hf__hash(w->space->seed, m->entry.ticket.bits, sizeof m->entry.ticket.bits));
    w->room->waiting++;
}

/* `was` is GONE for a newcomer. */
static void write_back(struct window *w, struct member *m, enum hf__place was)
{
    enum hf__place is = m->entry.place;
    bool waited = was == HF__PLACE_WAITING, waits = is == HF__PLACE_WAITING;

    if (waited && !waits)
        leave_queue(w, m);
    if (was != HF__PLACE_GONE && !waited && is == HF__PLACE_GONE)
        unlink_member(&w->room->present, m);
    if (waits && !waited)
        join_queue(w, m);
    if (!waits && is != HF__PLACE_GONE && (was == HF__PLACE_GONE || waited))
        append(&w->room->present, m);
    if (waits)
        hf__heap_set(&w->room->due, &m->due, m->entry.until_ms);
}

bool hf__window_save(struct window *w, bool skip_asker)
{
    struct hf__record *record = &w->record;
    bool taken = false;

    w->room->generation = record->generation;
    if (w->room->value != NULL) /* it is there since somebody opened it */
        w->room->value->doubt = record->doubt;
    for (size_t i = 0; i < record->count; i++) {
        struct hf__entry *e = &record->entries[i];
        bool is_new = (e->effects & HF__EFFECT_NEW) != 0;
        struct member *m = is_new ? w->newcomer : w->space->members[i];
        bool is_asker = w->ticket != NULL && hf__ticket_equal(&e->ticket, w->ticket);

        if (e->effects == 0 || (is_new && e->place == HF__PLACE_GONE))
            continue;
        if ((e->effects & HF__EFFECT_LET_IN) && !(skip_asker && is_asker))
            hf__client_call(m->client, &e->ticket, e->generation);
        if (e->effects & HF__EFFECT_WANTED)
            hf__client_call(m->client, &e->ticket, 0);
        enum hf__place was = is_new ? HF__PLACE_GONE : m->entry.place;
        e->effects = 0;
        m->entry = *e;
        m->room = w->room;
        write_back(w, m, was);
        taken |= is_new;
        if (e->place == HF__PLACE_GONE)
            hf__member_free(m);
    }
    return taken;
}

size_t hf__window_position(const struct window *w)
{
    size_t position = 0;

    for (const struct member *m = w->room->queue.first; m != NULL && position < COUNTABLE_MAX;
         m = m->next) {
        position++;
        if (hf__ticket_equal(&m->entry.ticket, w->ticket))
            return position;
    }
    return 0;
}
