/* See writers.h.
 *
 *      file:  | head: arrivals, busy, high, turns, lag | slot 0 | slot 1 | ... | slot 4095 |
 *      slot:  ticket (which class, when it came; 0: does not wait), word (a futex), seen
 *
 * A process has one slot from the first time that it has to wait until it closes. Only its owner
 * writes a ticket into it, so that a process killed at any instruction leaves at most a ticket
 * nobody stands behind. The first in line is found by reading all slots: that is a few microseconds,
 * and there is no chain of pointers that could be left broken.
 *
 * Why so:
 *  - flock() and fcntl() wait in line in the kernel, but without a time limit unless signals are
 *    used, which a library has no business with; and with one class only.
 *  - A robust pthread mutex is not fair, and its layout is the C library's: containers that share
 *    the file need not share that. Semaphores of System V and abstract sockets are per namespace.
 *  - A futex in a file is found by inode and offset, the same in every container; so is a lock on
 *    its bytes. Process ids, which mean something else in each of them, are not used.
 *
 * Who dies: the slot's owner holds a lock on one byte (of its open file, so that neither threads nor
 * a forked child take it away), which the kernel drops with it. Who is stopped: whoever was woken
 * and has not been seen trying for SEEN_US is passed over until it is seen again. Those behind the
 * first look after it: the nearer the sooner, so that a line of thousands sleeps as a rule.
 *
 * Waking the first takes a moment in which the database is free: on a busy machine many times as
 * long as a transaction. So the first few are woken together if the last ones took long, and the
 * order is that of arrival but for these few. */
#include "stores/sqlite/writers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/banned.h"

#define MAGIC     0x77723031u /* a file of another layout is not used */
#define SLOTS     4096
#define FEW_SLOTS 64 /* tried first, so that a short line is read fast */

#define FIRST_CLASS 0x80000000u
#define IN_LINE     0x40000000u
#define NUMBER      0x3fffffffu

#define SEEN_US   30000             /* who is to try and was not seen for so long is passed over */
#define AWAKE_MAX 8                 /* how many may be woken at once, */
#define AWAKE_US  250               /* one more for each such span that the last ones took */
#define WATCH_NS  INT64_C(30000000) /* times the place in line: how long to sleep before looking */
#define SLEEP_NS  INT64_C(1000000000)
#define NAP_NS    INT64_C(200000) /* in front: before another try, if nobody wakes us; doubled */
#define DOUBLINGS 5

struct slot {
    _Atomic uint32_t ticket;
    _Atomic uint32_t word;
    _Atomic uint32_t seen; /* when it was woken or last tried, in us; 0: it sleeps */
    uint32_t reserved;
};

struct hf__writers_map {
    _Atomic uint32_t magic;
    _Atomic uint32_t arrivals;
    _Atomic uint32_t busy;   /* somebody may be in line */
    _Atomic uint32_t high;   /* slots above are not in line */
    _Atomic uint32_t turns;  /* how often the first was woken */
    _Atomic uint32_t lag_us; /* how long it takes them to react, about */
    uint32_t reserved[10];
    struct slot slots[SLOTS];
};

static uint64_t roll(struct hf__writers *w, uint64_t below)
{
    w->dice ^= w->dice << 13;
    w->dice ^= w->dice >> 7;
    w->dice ^= w->dice << 17;
    return w->dice % below;
}

/* Of the wall clock, which time namespaces do not shift. A step of it is taken for silence, or for
 * a sign of life, once. */
static uint32_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    uint32_t us = (uint32_t)((uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000);
    return us != 0 ? us : 1;
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Opening ------------------------------------------------------------------ */

void hf__writers_open(struct hf__writers *w, const char *path, mode_t mode, uint64_t seed)
{
    struct stat st;
    uint32_t none = 0;
    void *map = MAP_FAILED;

    *w = (struct hf__writers){.fd = -1, .slot = -1, .dice = seed | 1};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return;
    /* Its blocks are there before it is mapped: a page without one would be a SIGBUS on a full disk. */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        ((st.st_mode & 0777) == mode || fchmod(fd, mode) == 0) && /* whatever the umask took */
        (st.st_size >= (off_t)sizeof *w->map || posix_fallocate(fd, 0, sizeof *w->map) == 0))
        map = mmap(NULL, sizeof *w->map, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) {
        w->map = map;
        if (atomic_compare_exchange_strong(&w->map->magic, &none, MAGIC) || none == MAGIC) {
            w->fd = fd;
            return;
        }
        munmap(map, sizeof *w->map);
        w->map = NULL;
    }
    close(fd);
}

void hf__writers_close(struct hf__writers *w)
{
    if (w->map == NULL)
        return;
    munmap(w->map, sizeof *w->map);
    close(w->fd);
    w->map = NULL;
}

/* Slots -------------------------------------------------------------------- */

static bool lock_slot(const struct hf__writers *w, int slot, int command, short *type)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};

    if (fcntl(w->fd, command, &lock) != 0)
        return false;
    *type = lock.l_type;
    return true;
}

static bool claim_slot(struct hf__writers *w)
{
    short type;

    for (int tries = 0; w->slot < 0 && tries < 32; tries++) {
        int slot = (int)roll(w, tries < 8 ? FEW_SLOTS : SLOTS);
        if (lock_slot(w, slot, F_OFD_SETLK, &type))
            w->slot = slot;
    }
    return w->slot >= 0;
}

static bool is_dead(const struct hf__writers *w, int slot)
{
    short type = F_WRLCK;

    return slot != w->slot && lock_slot(w, slot, F_OFD_GETLK, &type) && type == F_UNLCK;
}

static int slots_in_use(const struct hf__writers *w)
{
    uint32_t high = atomic_load(&w->map->high);

    return high < SLOTS ? (int)high : SLOTS;
}

static void raise_high(struct hf__writers *w, uint32_t high)
{
    uint32_t old = atomic_load(&w->map->high);

    while (old < high && !atomic_compare_exchange_weak(&w->map->high, &old, high))
        continue;
}

/* Larger is earlier in line; 0: not in line. The count of arrivals may wrap. */
static uint32_t age_of(uint32_t ticket, uint32_t arrivals)
{
    if (ticket == 0)
        return 0;
    return (ticket & FIRST_CLASS) | IN_LINE | ((arrivals - ticket) & NUMBER);
}

/* Woken, but it does not try. */
static bool is_silent(const struct slot *slot, uint32_t now)
{
    uint32_t seen = atomic_load(&slot->seen);

    return seen != 0 && now - seen > SEEN_US;
}

/* Those who are first in line and react, as many as fit; how many. `ret_before` (may be NULL): how
 * many are before us. */
struct heads {
    int slots[AWAKE_MAX];
    uint32_t ages[AWAKE_MAX];
    int count, most;
};

static void find_heads(const struct hf__writers *w, struct heads *h, int *ret_before)
{
    uint32_t arrivals = atomic_load(&w->map->arrivals), now = now_us();
    uint32_t own = age_of(w->ticket, arrivals);
    int before = 0;

    h->count = 0;
    for (int i = 0, high = slots_in_use(w); i < high; i++) {
        const struct slot *slot = &w->map->slots[i];
        uint32_t age = age_of(atomic_load(&slot->ticket), arrivals);
        if (age == 0 || (i != w->slot && is_silent(slot, now)))
            continue;
        before += age > own;
        if (h->count == h->most && age <= h->ages[h->count - 1])
            continue;
        int at = h->count < h->most ? h->count++ : h->count - 1;
        for (; at > 0 && h->ages[at - 1] < age; at--) {
            h->ages[at] = h->ages[at - 1];
            h->slots[at] = h->slots[at - 1];
        }
        h->ages[at] = age;
        h->slots[at] = i;
    }
    if (ret_before != NULL)
        *ret_before = before;
}

static int find_first(const struct hf__writers *w, int *ret_before)
{
    struct heads h = {.most = 1};

    find_heads(w, &h, ret_before);
    return h.count > 0 ? h.slots[0] : -1;
}

/* Waking ------------------------------------------------------------------- */

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t ns)
{
    struct timespec span = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    syscall(SYS_futex, word, FUTEX_WAIT, value, &span, NULL, 0);
}

/* Nobody is in line. Whoever gets in writes its ticket, then `high`, then `busy`: so either it is
 * found here or it sets them again. */
static void clear(struct hf__writers *w)
{
    atomic_store(&w->map->busy, 0);
    uint32_t high = atomic_exchange(&w->map->high, 0);
    for (uint32_t i = 0; i < high && i < SLOTS; i++) {
        if (atomic_load(&w->map->slots[i].ticket) == 0)
            continue;
        raise_high(w, i + 1);
        atomic_store(&w->map->busy, 1);
    }
}

static bool wake(struct hf__writers *w, int first)
{
    struct slot *slot = &w->map->slots[first];

    if (is_dead(w, first)) {
        atomic_store(&slot->ticket, 0);
        return false;
    }
    atomic_store(&slot->seen, now_us());
    atomic_fetch_add(&slot->word, 1);
    futex_wake(&slot->word);
    return true;
}

/* Wakes the first, and with it so many who are next as a busy machine needs to have one at hand. */
static void wake_first(struct hf__writers *w)
{
    uint32_t lag_us = atomic_load(&w->map->lag_us);
    struct heads h = {.most =
                          lag_us < AWAKE_US * AWAKE_MAX ? 1 + (int)(lag_us / AWAKE_US) : AWAKE_MAX};
    bool woken = false;

    atomic_fetch_add(&w->map->turns, 1);
    while (!woken) {
        find_heads(w, &h, NULL);
        if (h.count == 0)
            clear(w);
        if (h.count == 0 && atomic_load(&w->map->busy) == 0)
            return;
        if (h.count == 0) {
            find_heads(w, &h, NULL);
            if (h.count == 0)
                return; /* they do not react */
        }
        woken = wake(w, h.slots[0]);
        for (int i = 1; i < h.count; i++) {
            if (atomic_load(&w->map->slots[h.slots[i]].seen) == 0)
                wake(w, h.slots[i]);
        }
    }
}

/* Takes those who died out of the line, as far as they are before us. */
static void bury(struct hf__writers *w)
{
    uint32_t arrivals = atomic_load(&w->map->arrivals);
    uint32_t own = age_of(w->ticket, arrivals);

    for (int i = 0, high = slots_in_use(w); i < high; i++) {
        uint32_t ticket = atomic_load(&w->map->slots[i].ticket);
        if (age_of(ticket, arrivals) > own && is_dead(w, i))
            atomic_compare_exchange_strong(&w->map->slots[i].ticket, &ticket, 0);
    }
}

/* Waiting ------------------------------------------------------------------ */

static void get_in_line(struct hf__writers *w, bool first)
{
    struct slot *slot = &w->map->slots[w->slot];
    uint32_t number = atomic_fetch_add(&w->map->arrivals, 1) + 1;

    w->ticket = (number & NUMBER) | IN_LINE | (first ? FIRST_CLASS : 0);
    w->front = false;
    w->tries = 0;
    w->word = atomic_load(&slot->word);
    atomic_store(&slot->seen, 0);
    atomic_store(&slot->ticket, w->ticket);
    raise_high(w, (uint32_t)w->slot + 1);
    atomic_store(&w->map->busy, 1);
}

/* In front: wakes up when a transaction ends, and now and then without that, as not everybody who
 * writes knows of the line. */
static void sleep_in_front(struct hf__writers *w, int64_t most_ns)
{
    struct slot *slot = &w->map->slots[w->slot];
    int64_t nap_ns = NAP_NS << (w->tries < DOUBLINGS ? w->tries : DOUBLINGS);

    w->tries++;
    atomic_store(&slot->seen, now_us());
    futex_wait(&slot->word, w->word, nap_ns < most_ns ? nap_ns : most_ns);
}

/* Behind others: sleeps until woken. If nothing has moved meanwhile, looks after those before us. */
static void sleep_in_line(struct hf__writers *w, int before, int64_t most_ns)
{
    struct slot *slot = &w->map->slots[w->slot];
    uint32_t turns = atomic_load(&w->map->turns);
    int64_t span_ns = WATCH_NS * (1 + before);

    if (span_ns > most_ns)
        span_ns = most_ns;
    futex_wait(&slot->word, w->word, span_ns);
    if (atomic_load(&slot->word) != w->word || atomic_load(&w->map->turns) != turns)
        return;
    bury(w);
    int first = find_first(w, NULL);
    if (first >= 0 && first != w->slot && atomic_load(&w->map->slots[first].seen) == 0)
        wake_first(w); /* whoever should have done so is gone */
}

static void note_lag(struct hf__writers *w, uint32_t us)
{
    uint32_t old = atomic_load(&w->map->lag_us);

    atomic_store(&w->map->lag_us, (old * 3 + (us < SEEN_US ? us : SEEN_US)) / 4);
}

static int64_t nap_without_line(struct hf__writers *w, int64_t most_ns)
{
    int64_t longest_ns = w->naps < 4 ? 50000 : w->naps < 16 ? 250000 : 2000000;
    int64_t ns = (int64_t)(1 + roll(w, (uint64_t)longest_ns));
    struct timespec span = {.tv_nsec = ns < most_ns ? ns : most_ns};

    w->naps++;
    nanosleep(&span, NULL);
    return ns + 50000; /* what the kernel's timer adds */
}

int64_t hf__writers_wait(struct hf__writers *w, bool first, int64_t most_ns)
{
    if (w->map == NULL || !claim_slot(w))
        return nap_without_line(w, most_ns);
    struct slot *slot = &w->map->slots[w->slot];
    int64_t began_ns = now_ns(), slept_ns = 0;

    if (most_ns > SLEEP_NS)
        most_ns =
            SLEEP_NS + (int64_t)roll(w, SLEEP_NS / 4); /* then tries, whatever the line says */
    if (w->ticket == 0)
        get_in_line(w, first);
    else if (w->front)
        sleep_in_front(w, most_ns);
    while (!w->front && (slept_ns = now_ns() - began_ns) < most_ns) {
        int before = 0;
        uint32_t woken_us = atomic_load(&slot->seen);
        if (woken_us != 0)
            note_lag(w, now_us() - woken_us);
        w->front = woken_us != 0 || find_first(w, &before) == w->slot;
        if (!w->front)
            sleep_in_line(w, before, most_ns - slept_ns);
    }
    if (w->front)
        atomic_store(&slot->seen, now_us());
    w->word = atomic_load(&slot->word); /* before the try: a turn that ends after it wakes us */
    return now_ns() - began_ns + 1000;
}

bool hf__writers_busy(const struct hf__writers *w)
{
    return w->map != NULL && atomic_load_explicit(&w->map->busy, memory_order_relaxed) != 0;
}

void hf__writers_next(struct hf__writers *w)
{
    if (w->map == NULL) {
        w->naps = 0;
        return;
    }
    if (w->ticket != 0) {
        struct slot *slot = &w->map->slots[w->slot];
        atomic_store(&slot->ticket, 0);
        atomic_store(&slot->seen, 0);
        w->ticket = 0;
        w->front = false;
    }
    atomic_thread_fence(memory_order_seq_cst); /* the database was let go of before this look */
    if (atomic_load(&w->map->busy) != 0)
        wake_first(w);
}

int hf__writers_count(const struct hf__writers *w)
{
    int count = 0;

    if (w->map == NULL)
        return -1;
    for (int i = 0, high = slots_in_use(w); i < high; i++)
        count += atomic_load(&w->map->slots[i].ticket) != 0;
    return count;
}
