/* What inspect.lua tells of a lock: who is inside, and who waits. */
#ifndef HF_STORES_REDIS_ROOM_H
#define HF_STORES_REDIS_ROOM_H

#include "stores/redis/link.h"

struct hf__redis_room {
    const char *name;
    size_t name_len;
    const redisReply *found; /* a part of a reply whose rooms are good */
    int64_t now_ms;          /* the server's */
    const struct hf__search *search;
};

/* Whether it is an answer about one lock or more, `most` at most: the time, and then a room each. */
bool hf__redis_rooms_are_good(const redisReply *reply, size_t most);

/* Nobody is there, and nothing is left to be shown. */
bool hf__redis_room_is_empty(const redisReply *found);

/* Passes what is in it to room->look, whose result is returned if it is not 0. */
int hf__redis_show_room(const struct hf__redis_room *room);

#endif
