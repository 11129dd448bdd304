/* See space.h. The table of spaces is the one thing here that is global: it is what makes two
 * clients of one process meet. A forked child is another process: it starts without any. */
#include "stores/memory/space.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/banned.h"

static struct {
    pthread_once_t once;
    pthread_mutex_t mutex;
    struct space *first;
} spaces = {.once = PTHREAD_ONCE_INIT, .mutex = PTHREAD_MUTEX_INITIALIZER};

/* The spaces stay, for the handles that the child has a copy of. */
static void begin_anew(void)
{
    pthread_mutex_init(&spaces.mutex, NULL);
    spaces.first = NULL;
}

static void prepare(void)
{
    pthread_atfork(NULL, NULL, begin_anew);
}

static struct space *new_space(const char *name, const struct hf_env *env)
{
    size_t len = strlen(name);
    struct space *space = calloc(1, sizeof *space + len + 1);

    if (space == NULL)
        return NULL;
    memcpy(space->name, name, len);
    env->random(env->ctx, &space->seed, sizeof space->seed); /* zero would do as well */
    pthread_mutex_init(&space->mutex, NULL);
    space->next = spaces.first;
    spaces.first = space;
    return space;
}

struct space *hf__space_join(const char *name, const struct hf_env *env)
{
    pthread_once(&spaces.once, prepare);
    pthread_mutex_lock(&spaces.mutex);
    struct space *space = spaces.first;
    while (space != NULL && strcmp(space->name, name) != 0)
        space = space->next;
    if (space == NULL)
        space = new_space(name, env);
    if (space != NULL)
        space->clients++;
    pthread_mutex_unlock(&spaces.mutex);
    return space;
}

struct room *hf__space_find(const struct space *space, const char *name, size_t len)
{
    struct hf__link *link = hf__table_find(&space->rooms, hf__hash(space->seed, name, len));

    for (; link != NULL; link = hf__table_next(link)) {
        struct room *room = (struct room *)link;
        if (room->name_len == len && memcmp(room->name, name, len) == 0)
            return room;
    }
    return NULL;
}

struct room *hf__space_get(struct space *space, const char *name, size_t len)
{
    struct room *room = hf__space_find(space, name, len);

    if (room != NULL)
        return room;
    room = calloc(1, sizeof *room + len);
    if (room == NULL)
        return NULL;
    memcpy(room->name, name, len);
    room->name_len = len;
    hf__table_add(&space->rooms, &room->link, hf__hash(space->seed, name, len));
    return room;
}

bool hf__room_reserve(struct room *room)
{
    struct hf__record *record = &room->record;

    if (record->count < record->capacity)
        return true;
    size_t capacity = record->capacity == 0 ? 1 : 2 * record->capacity;
    struct hf__entry *entries = realloc(record->entries, capacity * sizeof *entries);
    if (entries == NULL)
        return false;
    record->entries = entries;
    record->capacity = capacity;
    return true;
}

static void call(const struct caller *caller, const struct hf__entry *e)
{
    struct client *client = caller->client;
    struct wake *wake = client->fd >= 0 ? malloc(sizeof *wake) : NULL;

    if (wake == NULL)
        return; /* a lost wake-up costs time only */
    *wake = (struct wake){.ticket = e->ticket, .generation = e->generation};
    *client->last = wake;
    client->last = &wake->next;
    eventfd_write(client->fd, 1);
}

void hf__room_settle(struct room *room, const struct hf__ticket *asker)
{
    struct hf__record *record = &room->record;

    for (size_t i = 0; i < record->count; i++) {
        struct hf__entry *e = &record->entries[i];
        bool is_asker = asker != NULL && hf__ticket_equal(&e->ticket, asker);
        if ((e->marks & HF__LET_IN) && !is_asker)
            call(e->who, e);
        if (e->place == HF__GONE)
            hf__caller_free(e->who);
    }
    hf__record_settle(record);
}

struct idle {
    int64_t untouched_since_ms;
    struct room *found;
};

static void find_idle(struct hf__link *link, void *ctx)
{
    struct idle *idle = ctx;
    struct room *room = (struct room *)link;

    if (room->record.count > 0 || room->touched_ms > idle->untouched_since_ms)
        return;
    room->next_idle = idle->found;
    idle->found = room;
}

static void sweep_room(struct hf__link *link, void *ctx)
{
    struct room *room = (struct room *)link;

    hf__doorman_sweep(&room->record, *(struct hf__moment *)ctx);
    hf__room_settle(room, NULL);
}

uint64_t hf__space_purge(struct space *space, int64_t untouched_since_ms, struct hf__moment at)
{
    struct idle idle = {.untouched_since_ms = untouched_since_ms};
    struct room *next;
    uint64_t count = 0;

    hf__table_each(&space->rooms, sweep_room, &at);
    hf__table_each(&space->rooms, find_idle, &idle);
    for (struct room *room = idle.found; room != NULL; room = next) {
        next = room->next_idle;
        hf__table_remove(&space->rooms, &room->link);
        free(room->record.entries);
        free(room);
        count++;
    }
    return count;
}

static char *copy(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    char *to = memcpy(*at, text, size);

    *at += size;
    return to;
}

struct client *hf__client_new(const struct hf__who *self)
{
    size_t size = strlen(self->host) + strlen(self->user) + strlen(self->program) + 3;
    struct client *client = calloc(1, sizeof *client + size);

    if (client == NULL)
        return NULL;
    char *at = client->text;
    client->refs = 1;
    client->fd = -1;
    client->last = &client->first;
    client->self = (struct hf__who){.host = copy(&at, self->host),
                                    .user = copy(&at, self->user),
                                    .program = copy(&at, self->program),
                                    .note = "",
                                    .pid = self->pid};
    return client;
}

void hf__client_unref(struct client *client)
{
    if (--client->refs == 0)
        free(client);
}

struct caller *hf__caller_new(struct client *client, const char *note)
{
    size_t len = strlen(note);
    struct caller *caller = malloc(sizeof *caller + len + 1);

    if (caller == NULL)
        return NULL;
    memcpy(caller->note, note, len + 1);
    caller->client = client;
    client->refs++;
    return caller;
}

void hf__caller_free(struct caller *caller)
{
    if (caller == NULL)
        return;
    hf__client_unref(caller->client);
    free(caller);
}
