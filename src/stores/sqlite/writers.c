/* See writers.h.
 *
 *      file:  | head: arrivals, busy, high, turns, lag, commits | slot 0 | slot 1 | ... | slot 4095 |
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
 * and has not been seen trying for 30 ms is passed over until it is seen again. Those behind the
 * first look after it: the nearer the sooner, so that a line of thousands sleeps as a rule.
 *
 * Waking the first takes a moment in which the database is free: on a busy machine many times as
 * long as a transaction. So the first few are woken together if the last ones took long, and the
 * order is that of arrival but for these few. */
#include "stores/sqlite/writers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/backoff.h"
#include "stores/sqlite/writers_slots.h"

#include "base/banned.h"

#define LAG_MAX_US  30000 /* who takes longer has been passed over */
#define AWAKE_US    250   /* one more is woken for each such span that the last ones took */
#define WATCH_NS    INT64_C(30000000) /* times the place in line: how long to sleep before looking */
#define SLEEP_NS    INT64_C(1000000000)
#define NAP_NS      INT64_C(200000) /* in front: before another try, if nobody wakes us; doubled */
#define DOUBLINGS   5
#define KEPT_NS     INT64_C(2000000000) /* how long who gave up has its place */
#define LONG_NAP_NS INT64_C(20000000)   /* shorter than what makes one be passed over */

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Opening ------------------------------------------------------------------ */

/* Its blocks are there before it is mapped: a page without one would be a SIGBUS on a full disk. What
 * little room is left on one is the database's. */
static bool make_blocks(int fd, off_t size)
{
    struct statvfs fs;

    return fstatvfs(fd, &fs) == 0 && fs.f_bavail * fs.f_frsize >= 8 * (uint64_t)size &&
           posix_fallocate(fd, 0, size) == 0;
}

void hf__writers_open(struct hf__writers *w, const char *path, mode_t mode, uint64_t seed)
{
    struct stat st;
    uint32_t none = 0;
    void *map = MAP_FAILED;

    *w = (struct hf__writers){.fd = -1, .slot = -1, .jitter = seed | 1};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        ((st.st_mode & 0777) == mode || fchmod(fd, mode) == 0) && /* whatever the umask took */
        (st.st_size >= (off_t)sizeof *w->map || make_blocks(fd, sizeof *w->map)))
        map = mmap(NULL, sizeof *w->map, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) {
        w->map = map;
        if (atomic_compare_exchange_strong(&w->map->magic, &none, HF__WRITERS_MAGIC) ||
            none == HF__WRITERS_MAGIC) {
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
    for (uint32_t i = 0; i < high && i < HF__WRITERS_SLOTS; i++) {
        if (atomic_load(&w->map->slots[i].ticket) == 0)
            continue;
        hf__writers_raise(w, i + 1);
        atomic_store(&w->map->busy, 1);
    }
}

static void wake(struct hf__writers *w, int first)
{
    struct hf__writers_slot *slot = &w->map->slots[first];

    atomic_store(&slot->seen, hf__writers_now_us());
    atomic_fetch_add(&slot->word, 1);
    futex_wake(&slot->word);
}

/* Wakes the first, and with it so many who are next as a busy machine needs to have one at hand.
 * Whether somebody lives is asked of the first only: the kernel takes longer the more are in line. */
static void wake_first(struct hf__writers *w)
{
    uint32_t lag_us = atomic_load(&w->map->lag_us);
    struct hf__writers_head_list h = {.most = lag_us < AWAKE_US * HF__WRITERS_AWAKE
                                                  ? 1 + (int)(lag_us / AWAKE_US)
                                                  : HF__WRITERS_AWAKE};

    atomic_fetch_add(&w->map->turns, 1);
    hf__writers_heads(w, &h, NULL);
    while (h.count > 0 && hf__writers_is_dead(w, h.slots[0])) {
        atomic_store(&w->map->slots[h.slots[0]].ticket, 0);
        hf__writers_heads(w, &h, NULL);
    }
    if (h.count == 0) {
        clear(w);
        hf__writers_heads(w, &h, NULL);
    }
    for (int i = 0; i < h.count; i++) {
        if (i == 0 || atomic_load(&w->map->slots[h.slots[i]].seen) == 0)
            wake(w, h.slots[i]);
    }
}

/* Takes those who died out of the line, as far as they are before us. */
static void bury(struct hf__writers *w)
{
    uint32_t arrivals = atomic_load(&w->map->arrivals);
    uint32_t own = hf__writers_age(w->ticket, arrivals);

    for (int i = 0, high = hf__writers_high(w); i < high; i++) {
        uint32_t ticket = atomic_load(&w->map->slots[i].ticket);
        if (hf__writers_age(ticket, arrivals) > own && hf__writers_is_dead(w, i))
            atomic_compare_exchange_strong(&w->map->slots[i].ticket, &ticket, 0);
    }
}

/* Waiting ------------------------------------------------------------------ */

static void get_in_line(struct hf__writers *w, bool first)
{
    struct hf__writers_slot *slot = &w->map->slots[w->slot];
    uint32_t number = atomic_fetch_add(&w->map->arrivals, 1) + 1;

    if (w->kept != 0 && now_ns() - w->kept_ns < KEPT_NS)
        number = w->kept;
    w->ticket = (number & HF__WRITERS_NUMBER) | HF__WRITERS_IN | (first ? HF__WRITERS_FIRST : 0);
    w->front = false;
    w->tries = 0;
    w->word = atomic_load(&slot->word);
    atomic_store(&slot->seen, 0);
    atomic_store(&slot->ticket, w->ticket);
    hf__writers_raise(w, (uint32_t)w->slot + 1);
    atomic_store(&w->map->busy, 1);
}

/* In front, and tried in vain: the first is woken when a transaction ends, and tries now and then
 * without that, as not everybody who writes knows of the line. The others of those who were woken
 * with it become the first in their turn. */
static void sleep_in_front(struct hf__writers *w, int64_t most_ns)
{
    struct hf__writers_slot *slot = &w->map->slots[w->slot];
    int64_t nap_ns = NAP_NS << (w->tries < DOUBLINGS ? w->tries : DOUBLINGS);

    if (hf__writers_first(w, NULL) != w->slot)
        nap_ns = LONG_NAP_NS;
    w->tries++;
    atomic_store(&slot->seen, hf__writers_now_us());
    futex_wait(&slot->word, w->word, nap_ns < most_ns ? nap_ns : most_ns);
}

/* Behind others: sleeps until woken. If nothing has moved meanwhile, looks after those before us. */
static void sleep_in_line(struct hf__writers *w, int before, int64_t most_ns)
{
    struct hf__writers_slot *slot = &w->map->slots[w->slot];
    uint32_t turns = atomic_load(&w->map->turns);
    int64_t span_ns = WATCH_NS * (1 + before);

    if (span_ns > most_ns)
        span_ns = most_ns;
    futex_wait(&slot->word, w->word, span_ns);
    if (atomic_load(&slot->word) != w->word || atomic_load(&w->map->turns) != turns)
        return;
    bury(w);
    int first = hf__writers_first(w, NULL);
    if (first >= 0 && first != w->slot && atomic_load(&w->map->slots[first].seen) == 0)
        wake_first(w); /* whoever should have done so is gone */
}

static void note_lag(struct hf__writers *w, uint32_t us)
{
    uint32_t old = atomic_load(&w->map->lag_us);

    atomic_store(&w->map->lag_us, (old * 3 + (us < LAG_MAX_US ? us : LAG_MAX_US)) / 4);
}

static int64_t nap_without_line(struct hf__writers *w, int64_t most_ns)
{
    int64_t longest_ns = w->naps < 4 ? 50000 : w->naps < 16 ? 250000 : 2000000;
    int64_t ns = (int64_t)(1 + hf__jitter(&w->jitter, (uint64_t)longest_ns));
    struct timespec span = {.tv_nsec = ns < most_ns ? ns : most_ns};

    w->naps++;
    nanosleep(&span, NULL);
    return ns + 50000; /* what the kernel's timer adds */
}

int64_t hf__writers_wait(struct hf__writers *w, bool first, int64_t most_ns)
{
    if (w->map == NULL || !hf__writers_claim(w))
        return nap_without_line(w, most_ns);
    struct hf__writers_slot *slot = &w->map->slots[w->slot];
    int64_t began_ns = now_ns(), slept_ns = 0;

    if (most_ns > SLEEP_NS)
        most_ns = SLEEP_NS + (int64_t)hf__jitter(
                                 &w->jitter, SLEEP_NS / 4); /* then tries, whatever the line says */
    if (w->ticket == 0)
        get_in_line(w, first);
    else if (w->front)
        sleep_in_front(w, most_ns);
    while (!w->front && (slept_ns = now_ns() - began_ns) < most_ns) {
        int before = 0;
        uint32_t woken_us = atomic_load(&slot->seen);
        if (woken_us != 0)
            note_lag(w, hf__writers_now_us() - woken_us);
        w->front = woken_us != 0 || hf__writers_first(w, &before) == w->slot;
        if (!w->front)
            sleep_in_line(w, before, most_ns - slept_ns);
    }
    if (w->front)
        atomic_store(&slot->seen, hf__writers_now_us());
    w->word = atomic_load(&slot->word); /* before the try: a turn that ends after it wakes us */
    return now_ns() - began_ns + 1000;
}

bool hf__writers_busy(const struct hf__writers *w)
{
    return w->map != NULL && atomic_load_explicit(&w->map->busy, memory_order_relaxed) != 0;
}

/* An operation has a time limit, a bid has two of them: without its place it would start anew at the
 * tail, and in a crowd that takes that long for all nobody might come to the front. */
void hf__writers_give_up(struct hf__writers *w)
{
    uint32_t place = w->ticket;

    hf__writers_next(w);
    w->kept = place;
    w->kept_ns = now_ns();
}

void hf__writers_next(struct hf__writers *w)
{
    w->kept = 0;
    if (w->map == NULL) {
        w->naps = 0;
        return;
    }
    if (w->ticket != 0) {
        struct hf__writers_slot *slot = &w->map->slots[w->slot];
        atomic_store(&slot->ticket, 0);
        atomic_store(&slot->seen, 0);
        w->ticket = 0;
        w->front = false;
    }
    atomic_thread_fence(memory_order_seq_cst); /* the database was let go of before this look */
    if (atomic_load(&w->map->busy) != 0)
        wake_first(w);
}

void hf__writers_committed(struct hf__writers *w)
{
    if (hf__writers_busy(w))
        atomic_fetch_add(&w->map->commits, 1);
    hf__writers_next(w);
}

uint32_t hf__writers_commits(const struct hf__writers *w)
{
    return w->map != NULL ? atomic_load(&w->map->commits) : 0;
}

int hf__writers_count(const struct hf__writers *w)
{
    int count = 0;

    if (w->map == NULL)
        return -1;
    for (int i = 0, high = hf__writers_high(w); i < high; i++)
        count += atomic_load(&w->map->slots[i].ticket) != 0;
    return count;
}
