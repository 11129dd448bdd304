/* Runs seeds: each in a process of its own, so that a crash is a result like others.
 *
 *     sim --seeds 1000 --from 1       many, on as many processors as --jobs says
 *     sim --seed 42 --history         one, and all that happens in it
 *     sim --without callbacks,kills   leaves something out */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

#define CPU_SECONDS 2 /* for one seed: a thread that never calls anything */

static const struct {
    const char *name, *text;
} features[] = {
#define X(id, name, text) {name, text},
    SIM_FEATURES(X)
#undef X
};

struct options {
    uint64_t from, seeds;
    int jobs;
    bool history, keep_going, one;
};

/* Shared by all processes of a run. */
struct totals {
    uint64_t done, failed, first_failed, simulated_s, steps, steps_most;
    struct figures figures;
};

/* One seed. ------------------------------------------------------------------------------------ */
static bool is_over(void)
{
    for (int i = 0; i <= workload.programs; i++) {
        if (workload.program[i] == NULL || !workload.program[i]->finished)
            return false;
    }
    return true;
}

static void add_figures(struct totals *t)
{
    const uint64_t *from = (const uint64_t *)&figures;
    uint64_t *to = (uint64_t *)&t->figures;
    size_t sums = offsetof(struct figures, longest_acquire_permille) / sizeof *from;
    size_t all = sizeof(struct figures) / sizeof *from;

    for (size_t i = 0; i < sums; i++)
        __atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
    for (size_t i = sums; i < all; i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
    if (sim.steps_most > t->steps_most)
        t->steps_most = sim.steps_most;
    __atomic_fetch_add(&t->steps, sim.steps, __ATOMIC_RELAXED);
    __atomic_fetch_add(&t->simulated_s, (uint64_t)(sim.now_ns / SIM_S), __ATOMIC_RELAXED);
}

static void run_seed(uint64_t seed, bool history, struct totals *totals)
{
    static const char *const names[] = {"a", "b", "c"};

    sim_begin(seed, history);
    server_begin();
    network_begin();
    workload.rooms = (int)sim_between(1, 3);
    workload.programs = (int)sim_between(1, PROGRAMS_MAX - 1);
    workload.workers = (int)sim_between(1, WORKERS_MAX);
    workload.ops = (int)sim_between(2, 7);
    for (int i = 0; i < workload.rooms; i++) {
        if (hf_gate_new(&server_room(names[i], 1)->gate) < 0)
            abort();
    }
    for (int i = 0; i < SIM_HOMES; i++) {
        char name[16];
        snprintf(name, sizeof name, "home%d", i);
        if (hf_gate_new(&server_room(name, strlen(name))->gate) < 0)
            abort();
    }
    sim_note("seed %" PRIu64 ": %d names, %d programs with %d threads, %s, op_timeout %lld ms, "
             "latency %lld us",
             seed, workload.rooms, workload.programs, workload.workers,
             network.pushes ? "pushed wake-ups" : "polling", (long long)network.op_timeout_ms,
             (long long)(network.latency_ns / SIM_US));
    for (int i = 0; i < workload.programs; i++)
        program_start(i);
    nemesis_begin();
    sim_run(is_over, ledger_look);
    int64_t ended_ns = sim.now_ns;
    nemesis_check_end();
    sim.now_ns = ended_ns;
    sim_note("all is well");
    add_figures(totals);
}

static void *map(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        abort();
    return at;
}

/* Its output goes to `out`. True: nothing was found. */
static bool fork_seed(uint64_t seed, bool history, struct totals *totals, FILE *out)
{
    int status = 0;
    fflush(out);
    pid_t child = fork();

    if (child == 0) {
        struct rlimit limit = {CPU_SECONDS, CPU_SECONDS + 1};
        setrlimit(RLIMIT_CPU, &limit);
        limit.rlim_cur = limit.rlim_max = 0;
        setrlimit(RLIMIT_CORE, &limit);
        dup2(fileno(out), 1);
        run_seed(seed, history, totals);
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        abort();
    if (WIFSIGNALED(status)) {
        fseek(out, 0, SEEK_END);
        fprintf(out, "\nFAULT seed %" PRIu64 ": ended by signal %d (%s)\n", seed, WTERMSIG(status),
                WTERMSIG(status) == SIGXCPU ? "it never ends" : "it crashed");
        fflush(out);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The fault once more, with the last things that happened before it. */
static void tell(uint64_t seed, const char *program)
{
    char lines[40][300];
    size_t n = 0;
    FILE *out = tmpfile();
    struct totals ignored = {0};

    if (out == NULL)
        return;
    fork_seed(seed, true, &ignored, out);
    rewind(out);
    while (fgets(lines[n % 40], sizeof lines[0], out) != NULL)
        n++;
    for (size_t i = n > 40 ? n - 40 : 0; i < n; i++)
        fputs(lines[i % 40], stdout);
    printf("again: %s --seed %" PRIu64 " --history\n", program, seed);
    fflush(stdout);
    fclose(out);
}

/* Many seeds. ---------------------------------------------------------------------------------- */
static void run_share(const struct options *o, int job, struct totals *totals, const char *program)
{
    FILE *out = fopen("/dev/null", "w");

    for (uint64_t i = (uint64_t)job; i < o->seeds; i += (uint64_t)o->jobs) {
        if (totals->failed > 0 && !o->keep_going)
            break;
        bool well = fork_seed(o->from + i, false, totals, out);
        __atomic_fetch_add(&totals->done, 1, __ATOMIC_RELAXED);
        if (well)
            continue;
        if (__atomic_fetch_add(&totals->failed, 1, __ATOMIC_RELAXED) == 0 || o->keep_going) {
            totals->first_failed = o->from + i;
            tell(o->from + i, program);
        }
    }
    fclose(out);
}

static void print_totals(const struct totals *t, double seconds)
{
    const struct figures *f = &t->figures;

    printf("%" PRIu64 " seeds in %.1f s: %" PRIu64 " h simulated, %" PRIu64 " steps; %" PRIu64
           " calls, %" PRIu64 " locks obtained, %" PRIu64 " lost, %" PRIu64 " requests, %" PRIu64
           " wake-ups, %" PRIu64 " callbacks\n",
           t->done, seconds, t->simulated_s / 3600, t->steps, f->calls, f->grants, f->losses,
           f->requests, f->wakes, f->callbacks);
    printf("faults: %" PRIu64 " kills, %" PRIu64 " freezes, %" PRIu64 " forks, %" PRIu64
           " closes, %" PRIu64 " broken, %" PRIu64 " adopted, %" PRIu64 " had again, %" PRIu64
           " data losses, %" PRIu64 " clock steps; outcomes: %" PRIu64 " timeouts, %" PRIu64
           " cancelled, %" PRIu64 " unknown\n",
           f->kills, f->freezes, f->forks, f->closes, f->breaks, f->adopted, f->cached,
           f->data_losses, f->clock_steps, f->timeouts, f->cancelled, f->unknown);
    printf(
        "longest after the caller's time was up, in op_timeouts: acquire %.2f, close %.2f, others "
        "%.2f; most in a second: %" PRIu64 " steps of a process, %" PRIu64
        " requests about a ticket\n",
        (double)f->longest_acquire_permille / 1000, (double)f->longest_close_permille / 1000,
        (double)f->longest_other_permille / 1000, t->steps_most, f->requests_most);
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", t->done - t->failed, t->failed);
}

static int run_many(const struct options *o, const char *program)
{
    struct totals *totals = map(sizeof *totals);
    struct timespec began, ended;

    clock_gettime(CLOCK_MONOTONIC, &began);
    fflush(stdout);
    for (int job = 0; job < o->jobs; job++) {
        if (fork() == 0) {
            run_share(o, job, totals, program);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    clock_gettime(CLOCK_MONOTONIC, &ended);
    print_totals(totals, (double)(ended.tv_sec - began.tv_sec) +
                             (double)(ended.tv_nsec - began.tv_nsec) / 1e9);
    return totals->failed > 0;
}

static int usage(const char *why)
{
    fprintf(stderr,
            "sim: %s\n"
            "usage: sim [--seeds N] [--from S] [--jobs N] [--keep-going] [--without A,B]\n"
            "       sim --seed S [--history] [--without A,B]\n",
            why);
    for (size_t i = 0; i < FEATURES; i++)
        fprintf(stderr, "  %-10s %s\n", features[i].name, features[i].text);
    return 2;
}

static bool leave_out(char *names)
{
    for (char *save, *name = strtok_r(names, ",", &save); name != NULL;
         name = strtok_r(NULL, ",", &save)) {
        size_t i = 0;
        while (i < FEATURES && strcmp(features[i].name, name) != 0)
            i++;
        if (i == FEATURES)
            return false;
        workload.with[i] = false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options o = {.from = 1, .seeds = 1000, .jobs = 2};

    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    for (size_t i = 0; i < FEATURES; i++)
        workload.with[i] = true;
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--history") == 0) {
            o.history = true;
        } else if (strcmp(argv[i], "--keep-going") == 0) {
            o.keep_going = true;
        } else if (strcmp(argv[i], "--seed") == 0) {
            o.from = strtoull(argv[++i], NULL, 10);
            o.one = true;
        } else if (strcmp(argv[i], "--seeds") == 0 && next[0] != '\0') {
            o.seeds = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--from") == 0 && next[0] != '\0') {
            o.from = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--jobs") == 0 && strtol(next, NULL, 10) > 0) {
            o.jobs = (int)strtol(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--without") != 0 || !leave_out(argv[++i])) {
            return usage("what is that?");
        }
    }
    if (!o.one)
        return run_many(&o, argv[0]);
    struct totals totals = {0};
    bool well = fork_seed(o.from, o.history, &totals, stdout);
    printf("seed %" PRIu64 ": %s\n", o.from, well ? "nothing was found" : "a fault");
    return well ? 0 : 1;
}
