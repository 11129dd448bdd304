/* Writing the trail of a room, and showing it. Whoever looks gets copies: the space is locked for one
 * name at a time, and nobody is called meanwhile. */
#include "stores/memory/trail.h"

#include <stdlib.h>
#include <string.h>

#include "doorman/trail.h"
#include "stores/memory/memory.h"
#include "stores/memory/names.h"

#include "base/banned.h"

void hf__memory_forget(struct room *room, size_t keep)
{
    while (room->ends > keep || room->steps > 2 * keep) {
        struct step *step = room->first_step;
        room->first_step = step->next;
        room->steps--;
        room->ends -= step->kind != HF_TRAIL_GRANTED;
        hf__client_unref(step->client);
        free(step);
    }
    if (room->first_step == NULL)
        room->last_step = &room->first_step;
}

static struct step *new_step(const struct member *member, const char *cause)
{
    size_t note_size = strlen(member->note) + 1, cause_size = strlen(cause) + 1;
    struct step *step = malloc(sizeof *step + note_size + cause_size);

    if (step == NULL)
        return NULL;
    memcpy(step->note, member->note, note_size);
    step->cause = memcpy(step->note + note_size, cause, cause_size);
    step->client = member->client;
    step->client->refs++;
    step->next = NULL;
    return step;
}

void hf__memory_note(const struct window *w, const struct member *member,
                     const struct hf__entry *was, const struct hf__entry *is)
{
    struct hf__change change = hf__trail_change(was, is, w->op, w->at);
    char breaker[HF__TRAIL_CAUSE_MAX];

    if (change.kind == 0)
        return;
    if (change.kind == HF_TRAIL_BROKEN) {
        hf__trail_breaker(w->self, breaker);
        change.cause = breaker;
    }
    struct step *step = new_step(member, change.cause);
    if (step == NULL)
        return;
    step->kind = change.kind;
    step->wall_ms = change.wall_ms;
    step->span_ms = change.span_ms;
    step->ticket = is->ticket;
    step->generation = is->generation;
    step->mode = is->mode;
    *w->room->last_step = step;
    w->room->last_step = &step->next;
    w->room->steps++;
    w->room->ends += step->kind != HF_TRAIL_GRANTED;
    hf__memory_forget(w->room, (size_t)w->history);
}

/* The steps of a name, copied, with references to their clients. */
struct copies {
    struct step **steps;
    size_t count;
};

static struct step *copy_step(const struct step *from)
{
    size_t note_size = strlen(from->note) + 1, cause_size = strlen(from->cause) + 1;
    struct step *step = malloc(sizeof *step + note_size + cause_size);

    if (step == NULL)
        return NULL;
    memcpy(step, from, sizeof *step + note_size + cause_size);
    step->cause = step->note + note_size;
    step->client->refs++;
    return step;
}

static int copy_steps(struct memory *m, const struct name *name, struct copies *copies)
{
    int r = 0;

    pthread_mutex_lock(&m->space->mutex);
    struct room *room = hf__space_find(m->space, name->bytes, name->len);
    size_t count = room != NULL ? room->steps : 0;
    copies->steps = count > 0 ? calloc(count, sizeof(*copies->steps)) : NULL;
    if (count > 0 && copies->steps == NULL)
        r = HF_NO_MEMORY;
    for (struct step *s = room != NULL && r == 0 ? room->first_step : NULL; s != NULL;
         s = s->next) {
        struct step *copy = copy_step(s);
        if (copy == NULL) {
            r = HF_NO_MEMORY;
            break;
        }
        copies->steps[copies->count++] = copy;
    }
    pthread_mutex_unlock(&m->space->mutex);
    return r;
}

static void free_copies(struct memory *m, struct copies *copies)
{
    pthread_mutex_lock(&m->space->mutex);
    for (size_t i = 0; i < copies->count; i++) {
        hf__client_unref(copies->steps[i]->client);
        free(copies->steps[i]);
    }
    pthread_mutex_unlock(&m->space->mutex);
    free(copies->steps);
}

static int tell(const struct hf__trail_search *search, const struct name *name,
                const struct step *step)
{
    struct hf__who who = step->client->self;

    who.note = step->note;
    return search->found(search->ctx, &(struct hf__trail_entry){.name = name->bytes,
                                                                .name_len = name->len,
                                                                .kind = step->kind,
                                                                .at_ms = step->wall_ms,
                                                                .mode = step->mode,
                                                                .ticket = step->ticket,
                                                                .generation = step->generation,
                                                                .span_ms = step->span_ms,
                                                                .who = &who,
                                                                .cause = step->cause});
}

static bool has_trail(const struct room *room)
{
    return room->steps > 0;
}

int hf__memory_trail(struct hf__store *store, const struct hf__trail_search *search,
                     int64_t deadline_ns, hf_error *err)
{
    struct memory *m = (struct memory *)store;
    struct hf__search names_of = {.name = search->name,
                                  .name_len = search->name_len,
                                  .prefix = search->prefix,
                                  .prefix_len = search->prefix_len};
    struct names names = {.search = &names_of, .wanted = has_trail};

    (void)deadline_ns;
    hf__memory_find_names(m, &names);
    int r = names.no_memory ? HF_NO_MEMORY : 0;
    for (size_t i = 0; r == 0 && i < names.count; i++) {
        struct copies copies = {0};
        r = copy_steps(m, names.all[i], &copies);
        for (size_t k = 0; r == 0 && k < copies.count; k++)
            r = tell(search, names.all[i], copies.steps[k]);
        free_copies(m, &copies);
    }
    hf__memory_free_names(&names);
    return r == HF_NO_MEMORY ? hf__fail(err, r, NULL) : r;
}
