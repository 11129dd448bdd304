/* The line of processes before the write lock: its order, and that nobody who dies, stops, gives up
 * or forks holds up the others. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "sqlite/fixture.h"
#include "stores/sqlite/writers.h"

#define MEMBERS  40
#define PATIENCE (30 * SECOND * HF__NS_PER_MS)

/* What the processes of a test share. A plain flag is "the database": whoever sets it is inside. */
struct stage {
    atomic_int inside, ready;
    atomic_int order[MEMBERS], count;
};

struct line {
    struct fixture *f;
    char path[200];
    struct stage *stage;
    struct hf__writers w; /* the test's own */
    pid_t pids[MEMBERS];
};

static int64_t real_ns(void)
{
    return hf__now_ns(&hf__system_env);
}

static int setup_line(void **state)
{
    struct line *l = calloc(1, sizeof *l);

    assert_non_null(l);
    l->f = make_fixture();
    snprintf(l->path, sizeof l->path, "%s" HF__WRITERS_SUFFIX, l->f->path);
    l->stage =
        mmap(NULL, sizeof *l->stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(l->stage != MAP_FAILED);
    hf__writers_open(&l->w, l->path, 0600, 1);
    assert_non_null(l->w.map);
    *state = l;
    return 0;
}

static int teardown_line(void **state)
{
    struct line *l = *state;

    for (int i = 0; i < MEMBERS; i++) {
        if (l->pids[i] > 0) {
            kill(l->pids[i], SIGKILL);
            waitpid(l->pids[i], NULL, 0);
        }
    }
    hf__writers_close(&l->w);
    munmap(l->stage, sizeof *l->stage);
    free_fixture(l->f);
    free(l);
    return 0;
}

static bool try_inside(struct stage *stage)
{
    int nobody = 0;

    return atomic_compare_exchange_strong(&stage->inside, &nobody, 1);
}

/* As db.c does it: waits until a try succeeds. False: in vain for `most_ns`. */
static bool get_inside(struct hf__writers *w, struct stage *stage, bool first, int64_t most_ns)
{
    int64_t until_ns = real_ns() + most_ns;
    bool may_try = first || !hf__writers_busy(w);

    while (!may_try || !try_inside(stage)) {
        if (real_ns() >= until_ns)
            return false;
        hf__writers_wait(w, first, until_ns - real_ns());
        may_try = true;
    }
    return true;
}

static void get_out(struct hf__writers *w, struct stage *stage)
{
    atomic_store(&stage->inside, 0);
    hf__writers_next(w);
}

static void wait_for(atomic_int *value, int wanted)
{
    int64_t until_ns = real_ns() + PATIENCE;

    while (atomic_load(value) != wanted) {
        if (real_ns() > until_ns)
            fail_msg("waited in vain: %d, not %d", atomic_load(value), wanted);
        usleep(500);
    }
}

static void wait_until_in_line(struct line *l, int count)
{
    int64_t until_ns = real_ns() + PATIENCE;

    while (hf__writers_count(&l->w) != count) {
        if (real_ns() > until_ns)
            fail_msg("in line: %d, not %d", hf__writers_count(&l->w), count);
        usleep(500);
    }
}

/* A process that gets in line behind those before it, and notes when it was inside. */
static void start_member(struct line *l, int i, bool first, int64_t most_ns)
{
    int before = hf__writers_count(&l->w);

    l->pids[i] = fork();
    if (l->pids[i] == 0) {
        struct hf__writers w;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        hf__writers_close(&l->w);
        hf__writers_open(&w, l->path, 0600, (uint64_t)i * 77777 + 3);
        bool inside = get_inside(&w, l->stage, first, most_ns);
        if (inside) {
            atomic_store(&l->stage->order[atomic_fetch_add(&l->stage->count, 1)], i + 1);
            get_out(&w, l->stage);
        } else {
            hf__writers_next(&w);
        }
        _exit(inside ? 0 : 1);
    }
    assert_true(l->pids[i] > 0);
    wait_until_in_line(l, before + 1);
}

/* Which place member `i` had, from 0 on. */
static int place_of(const struct line *l, int i)
{
    for (int k = 0; k < atomic_load(&l->stage->count); k++) {
        if (atomic_load(&l->stage->order[k]) == i + 1)
            return k;
    }
    return -1;
}

/* All of them wait, the last one with the rank of who keeps a grant if so asked; then their order. */
static void run_all(struct line *l, bool last_first)
{
    atomic_store(&l->stage->count, 0);
    assert_true(get_inside(&l->w, l->stage, false, PATIENCE));
    for (int i = 0; i < MEMBERS; i++)
        start_member(l, i, last_first && i == MEMBERS - 1, PATIENCE);
    get_out(&l->w, l->stage);
    wait_for(&l->stage->count, MEMBERS);
    for (int i = 0; i < MEMBERS; i++) {
        waitpid(l->pids[i], NULL, 0);
        l->pids[i] = 0;
    }
}

static int largest_shift(const struct line *l)
{
    int largest = 0;

    for (int i = 0; i < MEMBERS; i++) {
        int shift = abs(place_of(l, i) - i);
        largest = shift > largest ? shift : largest;
    }
    return largest;
}

/* The busier the machine, the more are woken at once: so one of a few times is enough. In any order
 * somebody would be shifted by almost all the others each time. */
static void first_come_first_served_but_for_a_few(void **state)
{
    struct line *l = *state;
    int shift = MEMBERS;

    for (int tries = 0; tries < 8 && shift > MEMBERS / 2; tries++) {
        run_all(l, false);
        shift = largest_shift(l);
    }
    assert_in_range(shift, 0, MEMBERS / 2);
    assert_false(hf__writers_busy(&l->w) && hf__writers_count(&l->w) > 0);
}

static void who_keeps_a_grant_goes_before_who_asks_for_one(void **state)
{
    struct line *l = *state;
    int place = MEMBERS;

    for (int tries = 0; tries < 8 && place > MEMBERS / 4; tries++) {
        run_all(l, true);
        place = place_of(l, MEMBERS - 1);
    }
    assert_in_range(place, 0, MEMBERS / 4);
}

static void who_comes_while_others_wait_does_not_try_before_them(void **state)
{
    struct line *l = *state;

    assert_true(get_inside(&l->w, l->stage, false, PATIENCE));
    assert_false(hf__writers_busy(&l->w));
    start_member(l, 0, false, PATIENCE);
    assert_true(hf__writers_busy(&l->w));
    get_out(&l->w, l->stage);
    wait_for(&l->stage->count, 1);
}

static void the_killed_are_passed_over(void **state)
{
    struct line *l = *state;

    assert_true(get_inside(&l->w, l->stage, false, PATIENCE));
    for (int i = 0; i < 6; i++)
        start_member(l, i, false, PATIENCE);
    for (int i = 0; i < 5; i++) {
        if (i == 3)
            continue;
        kill(l->pids[i], SIGKILL);
        waitpid(l->pids[i], NULL, 0);
        l->pids[i] = 0;
    }
    get_out(&l->w, l->stage);
    wait_for(&l->stage->count, 2);
}

static void a_killed_holder_is_noticed_by_who_waits(void **state)
{
    struct line *l = *state;

    l->pids[5] = fork();
    if (l->pids[5] == 0) {
        struct hf__writers w;
        hf__writers_close(&l->w);
        hf__writers_open(&w, l->path, 0600, 99);
        get_inside(&w, l->stage, false, PATIENCE);
        atomic_store(&l->stage->ready, 1);
        pause();
    }
    wait_for(&l->stage->ready, 1);
    start_member(l, 0, false, PATIENCE);
    start_member(l, 1, false, PATIENCE);
    kill(l->pids[5], SIGKILL);
    waitpid(l->pids[5], NULL, 0);
    l->pids[5] = 0;
    atomic_store(&l->stage->inside, 0); /* the kernel drops the lock of who died */
    wait_for(&l->stage->count, 2);
}

static void the_stopped_are_passed_over_and_come_in_when_they_go_on(void **state)
{
    struct line *l = *state;
    int status;

    assert_true(get_inside(&l->w, l->stage, false, PATIENCE));
    for (int i = 0; i < 3; i++)
        start_member(l, i, false, PATIENCE);
    kill(l->pids[0], SIGSTOP);
    assert_int_equal(waitpid(l->pids[0], &status, WUNTRACED), l->pids[0]);
    get_out(&l->w, l->stage);
    wait_for(&l->stage->count, 2);
    kill(l->pids[0], SIGCONT);
    wait_for(&l->stage->count, 3);
    check_number("place", place_of(l, 0), 2);
}

static void who_gives_up_leaves_the_line(void **state)
{
    struct line *l = *state;
    int status;

    assert_true(get_inside(&l->w, l->stage, false, PATIENCE));
    start_member(l, 0, false, 100 * HF__NS_PER_MS);
    start_member(l, 1, false, PATIENCE);
    assert_int_equal(waitpid(l->pids[0], &status, 0), l->pids[0]);
    l->pids[0] = 0;
    check_number("status", WEXITSTATUS(status), 1);
    wait_until_in_line(l, 1);
    get_out(&l->w, l->stage);
    wait_for(&l->stage->count, 1);
}

static void who_tries_again_soon_has_its_place(void **state)
{
    struct line *l = *state;

    assert_true(try_inside(l->stage)); /* somebody who does not know of the line */
    hf__writers_wait(&l->w, false, 1000000);
    uint32_t place = l->w.ticket;
    hf__writers_give_up(&l->w);
    check_number("in line", hf__writers_count(&l->w), 0);
    start_member(l, 0, false, PATIENCE);
    hf__writers_wait(&l->w, false, 1000000);
    check_number("place", l->w.ticket, place);
    get_out(&l->w, l->stage);
    wait_for(&l->stage->count, 1);
    assert_true(try_inside(l->stage));
    hf__writers_wait(&l->w, false, 1000000);
    assert_true(l->w.ticket != place); /* it was used */
    get_out(&l->w, l->stage);
}

/* The child has a copy of the descriptor, so the kernel keeps the slot's lock although its owner
 * died. */
static void a_child_of_who_died_in_line_holds_up_nobody(void **state)
{
    struct line *l = *state;

    assert_true(get_inside(&l->w, l->stage, false, PATIENCE));
    l->pids[5] = fork();
    if (l->pids[5] == 0) {
        struct hf__writers w;
        hf__writers_close(&l->w);
        hf__writers_open(&w, l->path, 0600, 99);
        hf__writers_wait(&w, false, 1000000);
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, 0);
            atomic_store(&l->stage->ready, getpid());
            alarm(60);
            pause();
        }
        pause();
    }
    wait_until_in_line(l, 1);
    start_member(l, 0, false, PATIENCE);
    start_member(l, 1, false, PATIENCE);
    kill(l->pids[5], SIGKILL);
    waitpid(l->pids[5], NULL, 0);
    l->pids[5] = 0;
    get_out(&l->w, l->stage);
    wait_for(&l->stage->count, 2);
    if (atomic_load(&l->stage->ready) > 0)
        kill(atomic_load(&l->stage->ready), SIGKILL);
}

/* What a reboot, a bug or a stranger's program may have left in it. */
static void whatever_is_in_the_file_holds_up_nobody(void **state)
{
    struct line *l = *state;
    unsigned char noise[70000];

    random_fill(&l->f->random, noise, sizeof noise);
    int fd = open(l->path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, noise, 65600 - 4, 4), 65600 - 4); /* all but the magic number */
    close(fd);
    atomic_store(&l->stage->inside, 1);
    l->pids[0] = fork();
    if (l->pids[0] == 0) {
        struct hf__writers w;
        hf__writers_close(&l->w);
        hf__writers_open(&w, l->path, 0600, 7);
        if (!get_inside(&w, l->stage, false, PATIENCE))
            _exit(1);
        atomic_store(&l->stage->order[atomic_fetch_add(&l->stage->count, 1)], 1);
        get_out(&w, l->stage);
        _exit(0);
    }
    usleep(20000);
    atomic_store(&l->stage->inside, 0);
    wait_for(&l->stage->count, 1);
}

static void a_file_of_another_layout_is_not_used(void **state)
{
    struct line *l = *state;
    struct hf__writers other;
    int fd = open(l->path, O_RDWR | O_CLOEXEC);

    assert_int_equal(pwrite(fd, "else", 4, 0), 4);
    close(fd);
    hf__writers_open(&other, l->path, 0600, 1);
    assert_null(other.map);
    assert_true(get_inside(&other, l->stage, false, PATIENCE));
    assert_false(get_inside(&other, l->stage, false, 10 * HF__NS_PER_MS));
    get_out(&other, l->stage);
}

static void without_a_file_everybody_naps_and_tries(void **state)
{
    struct line *l = *state;
    struct hf__writers other;

    hf__writers_open(&other, "/proc/nowhere/locks.db-writers", 0600, 1);
    assert_null(other.map);
    check_number("count", hf__writers_count(&other), -1);
    assert_true(get_inside(&other, l->stage, false, PATIENCE));
    get_out(&other, l->stage);
    hf__writers_close(&other);
}

static void only_a_turn_moves_the_line(void **state)
{
    struct line *l = *state;
    struct hf__writers other;

    hf__writers_open(&other, l->path, 0600, 2);
    hf__writers_wait(&other, false, 1000000);
    assert_true(hf__writers_busy(&l->w));
    uint32_t commits = hf__writers_commits(&other);
    hf__writers_next(&l->w);
    hf__writers_give_up(&other);
    assert_int_equal(hf__writers_commits(&other), commits);
    hf__writers_wait(&other, false, 1000000);
    hf__writers_committed(&l->w);
    assert_int_equal(hf__writers_commits(&other), commits + 1);
    hf__writers_next(&other);
    hf__writers_close(&other);
}

int main(void)
{
#define LINE(test) cmocka_unit_test_setup_teardown(test, setup_line, teardown_line)
    const struct CMUnitTest tests[] = {
        LINE(first_come_first_served_but_for_a_few),
        LINE(who_keeps_a_grant_goes_before_who_asks_for_one),
        LINE(who_comes_while_others_wait_does_not_try_before_them),
        LINE(the_killed_are_passed_over),
        LINE(a_killed_holder_is_noticed_by_who_waits),
        LINE(the_stopped_are_passed_over_and_come_in_when_they_go_on),
        LINE(who_gives_up_leaves_the_line),
        LINE(who_tries_again_soon_has_its_place),
        LINE(only_a_turn_moves_the_line),
        LINE(a_child_of_who_died_in_line_holds_up_nobody),
        LINE(whatever_is_in_the_file_holds_up_nobody),
        LINE(a_file_of_another_layout_is_not_used),
        LINE(without_a_file_everybody_naps_and_tries),
    };

    return cmocka_run_group_tests_name("sqlite_writers", tests, NULL, NULL);
}
