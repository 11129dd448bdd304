/* What other processes write beside a SQLite database: the line of those who want to write
 * (<database>-writers), and the datagrams by which waiters are called. Whatever is in them, no slot is
 * used that there is not, every call ends, and no datagram becomes more calls than it has. */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shape.h"
#include "stores/sqlite/sqlite.h"
#include "stores/sqlite/writers_slots.h"

static void put_word(struct shape *s, _Atomic uint32_t *word)
{
    atomic_store(word, (uint32_t)shape_number(s));
}

static void fill(struct shape *s, struct hf__writers_map *map)
{
    put_word(s, &map->arrivals);
    put_word(s, &map->busy);
    put_word(s, &map->high);
    put_word(s, &map->turns);
    put_word(s, &map->lag_us);
    for (unsigned n = shape_choose(s, 16); n > 0; n--) {
        unsigned at = shape_choose(s, 2) ? HF__WRITERS_SLOTS - 1 - shape_byte(s) : shape_byte(s);
        put_word(s, &map->slots[at].ticket);
        put_word(s, &map->slots[at].word);
        put_word(s, &map->slots[at].seen);
    }
}

static void stand_in_line(struct shape *s)
{
    static int fd = -1;
    struct hf__writers_head_list heads = {.most = HF__WRITERS_AWAKE};
    struct hf__writers_map *map = calloc(1, sizeof *map);
    struct hf__writers w = {.map = map, .slot = -1, .jitter = 7};
    int before;

    if (fd < 0)
        fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && map != NULL);
    w.fd = fd;
    fill(s, map);
    hf__writers_heads(&w, &heads, &before);
    REQUIRE(heads.count >= 0 && heads.count <= HF__WRITERS_AWAKE && before >= 0);
    for (int i = 0; i < heads.count; i++)
        REQUIRE(heads.slots[i] >= 0 && heads.slots[i] < HF__WRITERS_SLOTS);
    (void)hf__writers_busy(&w);
    REQUIRE(hf__writers_count(&w) <= HF__WRITERS_SLOTS);
    REQUIRE(hf__writers_wait(&w, shape_choose(s, 2), 1000) >= 0);
    if (shape_choose(s, 2))
        hf__writers_give_up(&w);
    else
        hf__writers_next(&w);
    REQUIRE(w.slot < HF__WRITERS_SLOTS);
    free(map);
}

static void count_call(void *ctx, const struct hf__ticket *ticket, uint64_t generation)
{
    (void)ticket, (void)generation;
    ++*(size_t *)ctx;
}

static void read_datagrams(struct shape *s)
{
    struct hf__sqlite store = {0};
    unsigned char message[5000] = {0};
    size_t calls = 0, most = 1;
    int pair[2];

    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    for (unsigned n = shape_choose(s, 8); n > 0; n--) {
        size_t len = shape_choose(s, 2) ? 24u * shape_byte(s) : shape_byte(s);
        len = len < sizeof message ? len : sizeof message;
        for (size_t i = 0; i < len && s->size > 0; i++)
            message[i] = (unsigned char)shape_byte(s);
        if (send(pair[1], message, len, MSG_DONTWAIT) >= 0)
            most += len / 24;
    }
    store.wake.in = pair[0];
    store.wake.backlog = 3;
    hf__sqlite_wake(&store.base, count_call, &calls);
    REQUIRE(calls <= most);
    close(pair[0]);
    close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shape s = {data, size};

    if (shape_choose(&s, 2))
        stand_in_line(&s);
    else
        read_datagrams(&s);
    return 0;
}
