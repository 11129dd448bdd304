/* See window.h. Entries are copied out and back, so a window that was too small is simply dropped. */
#include "stores_memory_window.h"
#include "stores_memory_trail.h"

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

static struct member *member_of(struct hf__timer *due)
{
    return (struct member *)((char *)due - offsetof(struct member, due));
}

/* Whom the operation is about, if that is one of a crowd. */
static struct member *find_subject(const struct window *w)
{
    uint64_t hash = hf__hash(w->space->seed, w->ticket->bits, sizeof w->ticket->bits);
    struct hf__link *link = hf__table_find(&w->space->by_ticket, hash);

    for (; link != NULL; link = hf__table_next(link)) {
        struct member *member =
            (struct member *)((char *)link - offsetof(struct member, by_ticket));
        bool is_here = member->crowd == &w->room->queue || member->crowd == &w->room->sharers;
        if (is_here && hf__ticket_equal(&member->entry.ticket, w->ticket))
            return member;
    }
    return NULL;
}

/* A heap has none before its father: whoever is not due ends the search below him. */
static bool take_due(struct window *w, const struct hf__heap *due, size_t i)
{
    if (i >= due->count || due->timers[i]->when_ns > w->now_ms)
        return true;
    return take(w, member_of(due->timers[i])) && take_due(w, due, 2 * i + 1) &&
           take_due(w, due, 2 * i + 2);
}

/* The earliest of those that were not taken. */
static int64_t earliest(const struct window *w, const struct hf__heap *due, size_t i)
{
    if (i >= due->count)
        return HF__NEVER;
    if (member_of(due->timers[i])->loaded != w->space->windows)
        return due->timers[i]->when_ns;
    int64_t a = earliest(w, due, 2 * i + 1), b = earliest(w, due, 2 * i + 2);
    return a < b ? a : b;
}

/* A subject that waits comes with the queue. */
static bool take_present(struct window *w, struct member *subject)
{
    struct crowd *sharers = &w->room->sharers;
    bool room_for_all = true;

    for (struct member *m = w->room->few.first; room_for_all && m != NULL; m = m->next)
        room_for_all = take(w, m);
    size_t few = w->record.count;
    room_for_all = room_for_all && take_due(w, &sharers->due, 0);
    if (room_for_all && subject != NULL && subject->crowd == sharers)
        room_for_all = take(w, subject);
    w->record.sharers.count = sharers->count - (w->record.count - few);
    w->record.sharers.limit = w->record.sharers.count > 0 ? w->room->sharers_limit : 0;
    w->record.sharers.until_ms = earliest(w, &sharers->due, 0);
    return room_for_all;
}

static bool take_queue(struct window *w, struct member *subject)
{
    struct crowd *queue = &w->room->queue;
    bool room_for_all = true;
    size_t seen = 0;

    for (struct member *m = queue->members.first; room_for_all && m != NULL && seen < w->waiters;
         m = m->next, seen++)
        room_for_all = take(w, m);
    size_t behind = w->record.count; /* whoever comes now stands behind those who are left out */
    room_for_all = room_for_all && take_due(w, &queue->due, 0);
    if (room_for_all && subject != NULL)
        room_for_all = take(w, subject);
    w->record.unseen = queue->count - seen - (w->record.count - behind);
    w->record.gap = behind;
    return room_for_all;
}

bool hf__window_load(struct window *w)
{
    struct room *room = w->room;
    struct member *subject = w->ticket != NULL ? find_subject(w) : NULL;

    /* Whoever finds nobody is let in, and needs no place in the queue. */
    bool may_queue = w->newcomer != NULL && !hf__room_is_empty(room);

    w->record.count = 0;
    if (!reserve(w) || (may_queue && !hf__heap_reserve(&room->queue.due, room->queue.count + 1)))
        return false;
    w->space->windows++;
    w->record.generation = room->generation;
    w->record.doubt = false;
    if (room->value != NULL) {
        w->record.value_generation = room->value->generation;
        w->record.value_order = room->value->order;
        w->record.doubt = room->value->doubt;
    }
    return take_present(w, subject) && take_queue(w, subject);
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

/* Whoever shares with the limit of the others is one of them, unless somebody may have to call it,
 * or there is no memory: then it is one of the few, which only costs time. */
static struct crowd *crowd_for(struct window *w, const struct hf__entry *e)
{
    struct crowd *sharers = &w->room->sharers;
    bool inside = e->place == HF__PLACE_INSIDE || e->place == HF__PLACE_LINGERING;

    if (e->place == HF__PLACE_WAITING)
        return &w->room->queue;
    if (!inside || e->mode != HF_SHARED || (e->tell && !e->told))
        return NULL;
    if (sharers->count > 0 && e->limit != w->room->sharers_limit)
        return NULL;
    return hf__heap_reserve(&sharers->due, sharers->count + 1) ? sharers : NULL;
}

static void leave(struct window *w, struct member *m)
{
    if (m->crowd == NULL) {
        unlink_member(&w->room->few, m);
        return;
    }
    unlink_member(&m->crowd->members, m);
    hf__table_remove(&w->space->by_ticket, &m->by_ticket);
    hf__heap_remove(&m->crowd->due, &m->due);
    m->crowd->count--;
}

static void join(struct window *w, struct member *m, struct crowd *crowd)
{
    m->crowd = crowd;
    if (crowd == NULL) {
        append(&w->room->few, m);
        return;
    }
    append(&crowd->members, m);
    hf__table_add(&w->space->by_ticket, &m->by_ticket,
                  hf__hash(w->space->seed, m->entry.ticket.bits, sizeof m->entry.ticket.bits));
    crowd->count++;
    if (crowd == &w->room->sharers)
        w->room->sharers_limit = m->entry.limit;
}

static void write_back(struct window *w, struct member *m, bool is_new)
{
    bool is_gone = m->entry.place == HF__PLACE_GONE;
    struct crowd *crowd = is_gone ? NULL : crowd_for(w, &m->entry);

    if (!is_new && (is_gone || m->crowd != crowd))
        leave(w, m);
    if (!is_gone && (is_new || m->crowd != crowd))
        join(w, m, crowd);
    if (crowd != NULL)
        hf__heap_set(&crowd->due, &m->due, m->entry.until_ms);
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
        if (w->history > 0)
            hf__memory_note(w, m, is_new ? NULL : &m->entry, e);
        e->effects = 0;
        m->entry = *e;
        write_back(w, m, is_new);
        taken |= is_new;
        if (e->place == HF__PLACE_GONE)
            hf__member_free(m);
    }
    return taken;
}

size_t hf__window_position(const struct window *w)
{
    size_t position = 0;

    for (const struct member *m = w->room->queue.members.first;
         m != NULL && position < COUNTABLE_MAX; m = m->next) {
        position++;
        if (hf__ticket_equal(&m->entry.ticket, w->ticket))
            return position;
    }
    return 0;
}
