/* See space.h. The table of spaces is the one thing here that is global: it is what makes two
 * clients of one process meet. A forked child is another process: it starts without any. */
#include "stores_memory_space.h"
#include "stores_memory_trail.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base_banned.h"

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
    if (space != NULL) {
        pthread_mutex_lock(&space->mutex);
        space->clients++;
        pthread_mutex_unlock(&space->mutex);
    }
    pthread_mutex_unlock(&spaces.mutex);
    return space;
}

void hf__space_leave(struct space *space)
{
    struct room *newer;

    if (--space->clients > 0)
        return;
    for (struct room *room = space->oldest; room != NULL; room = newer) {
        newer = room->newer;
        if (hf__room_is_empty(room) && !hf__room_has_value(room))
            hf__space_remove(space, room);
    }
}

/* Rooms. --------------------------------------------------------------------------------------- */
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

static void forget_age(struct space *space, struct room *room)
{
    *(room->older != NULL ? &room->older->newer : &space->oldest) = room->newer;
    *(room->newer != NULL ? &room->newer->older : &space->newest) = room->older;
}

static void be_newest(struct space *space, struct room *room)
{
    room->older = space->newest;
    room->newer = NULL;
    *(space->newest != NULL ? &space->newest->newer : &space->oldest) = room;
    space->newest = room;
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
    room->generation = space->generation;
    room->last_step = &room->first_step;
    hf__table_add(&space->rooms, &room->link, hf__hash(space->seed, name, len));
    be_newest(space, room);
    return room;
}

void hf__space_touch(struct space *space, struct room *room, int64_t now_ms)
{
    room->touched_ms = now_ms;
    if (space->newest == room)
        return;
    forget_age(space, room);
    be_newest(space, room);
}

struct room *hf__space_untouched(const struct space *space, int64_t since_ms)
{
    return space->oldest != NULL && space->oldest->touched_ms <= since_ms ? space->oldest : NULL;
}

bool hf__room_has_value(const struct room *room)
{
    return room->value != NULL && room->value->len > 0;
}

bool hf__room_is_empty(const struct room *room)
{
    return room->few.first == NULL && room->sharers.count == 0 && room->queue.count == 0;
}

void hf__space_remove(struct space *space, struct room *room)
{
    if (room->generation > space->generation)
        space->generation = room->generation;
    hf__table_remove(&space->rooms, &room->link);
    forget_age(space, room);
    hf__heap_clear(&room->sharers.due);
    hf__heap_clear(&room->queue.due);
    hf__memory_forget(room, 0);
    free(room->value);
    free(room);
}

/* Clients and members. ------------------------------------------------------------------------- */
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

void hf__client_call(struct client *client, const struct hf__ticket *ticket, uint64_t generation)
{
    struct wake *wake = client->fd >= 0 ? malloc(sizeof *wake) : NULL;

    if (wake == NULL)
        return;
    *wake = (struct wake){.ticket = *ticket, .generation = generation};
    *client->last = wake;
    client->last = &wake->next;
    eventfd_write(client->fd, 1);
}

struct member *hf__member_new(struct client *client, const char *note)
{
    size_t len = strlen(note);
    struct member *member = malloc(sizeof *member + len + 1);

    if (member == NULL)
        return NULL;
    *member = (struct member){.client = client};
    memcpy(member->note, note, len + 1);
    client->refs++;
    return member;
}

void hf__member_free(struct member *member)
{
    if (member == NULL)
        return;
    hf__client_unref(member->client);
    free(member);
}
