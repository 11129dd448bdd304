/* conformance URL: runs every clause of the contract against one store.
 *
 * Each case runs in a process of its own, in a process group of its own and with a deadline, so
 * that a hang or a crash is one failure; several run at a time. Prints each case with its clause,
 * the store's row of the capability table, and the counts. */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "report.h"

#define CASE_DEADLINE_MS 60000
#define JOBS_MAX         16

static const struct conformance_case *const tables[] = {
    cases_declared, cases_mutex,   cases_wait,       cases_wake,     cases_rw,      cases_lease,
    cases_lost,     cases_cut_off, cases_delay,      cases_names,    cases_attacks, cases_detach,
    cases_never,    cases_broken,  cases_fence,      cases_at_least, cases_value,   cases_wanted,
    cases_reentry,  cases_fork,    cases_lost_reply, cases_close,    cases_crowd,   cases_watch,
    cases_together, cases_history, cases_cached,
};
#define TABLE_COUNT (sizeof tables / sizeof tables[0])

struct job {
    const struct conformance_case *c;
    pid_t pid; /* 0: free */
    int fd;    /* what it prints */
    int64_t began_ms;
    char text[4000];
    size_t used;
};

struct suite {
    const char *url, *only;
    int crowd;
    bool in_turn;
    size_t jobs_max;
    uint32_t can;
    uint32_t run; /* of this process: makes names unique */
    unsigned passed, failed, skipped;
    uint32_t broken; /* capabilities of cases that failed */
    struct job jobs[JOBS_MAX];
};

/* What the store declares. Asked in a process of its own, since this one is going to fork. */
static uint32_t ask_capabilities(const char *url)
{
    uint32_t can = 0;
    int fds[2];

    if (pipe(fds) != 0)
        exit(71);
    pid_t pid = fork();
    if (pid == 0) {
        hf_client *client;
        hf_error err;
        if (hf_open(url, NULL, &client, &err) != 0) {
            fprintf(stderr, "conformance: %s\n", err.text);
            _exit(hf_code_exit_status(err.code));
        }
        can = hf_capabilities(client);
        hf_close(client);
        _exit(write(fds[1], &can, sizeof can) == sizeof can ? 0 : 71);
    }
    int status = 0;
    close(fds[1]);
    bool got = read(fds[0], &can, sizeof can) == sizeof can;
    close(fds[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !got)
        exit(WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : 71);
    return can;
}

static void start(struct suite *s, struct job *job, const struct conformance_case *c,
                  unsigned number)
{
    struct ctx ctx = {.url = s->url, .can = s->can, .crowd = s->crowd, .in_turn = s->in_turn};
    int fds[2];

    snprintf(ctx.prefix, sizeof ctx.prefix, "conformance-%08x-%u/", s->run, number);
    if (pipe(fds) != 0)
        exit(71);
    *job = (struct job){.c = c, .fd = fds[0], .began_ms = now_ms(), .pid = fork()};
    if (job->pid < 0)
        exit(71);
    if (job->pid > 0) {
        close(fds[1]);
        return;
    }
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(fds[1], STDOUT_FILENO);
    dup2(fds[1], STDERR_FILENO);
    close_range(3, ~0U, 0);
    run_case(c, &ctx);
}

/* True once it has closed its output. */
static bool read_output(struct job *job)
{
    char spill[512];
    size_t room = sizeof job->text - 1 - job->used;
    ssize_t n =
        room > 0 ? read(job->fd, job->text + job->used, room) : read(job->fd, spill, sizeof spill);

    if (n > 0 && room > 0)
        job->used += (size_t)n;
    return n == 0 || (n < 0 && errno != EINTR);
}

static void finish(struct suite *s, struct job *job, bool overdue)
{
    char result[4100];
    int status = 0;

    if (overdue) {
        report_stacks(job->pid);
        kill(-job->pid, SIGKILL);
    }
    waitpid(job->pid, &status, 0);
    kill(-job->pid, SIGKILL); /* actors that it left */
    close(job->fd);
    job->pid = 0;

    bool passed = !overdue && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (passed) {
        snprintf(result, sizeof result, "(%lld ms)", (long long)(now_ms() - job->began_ms));
        s->passed++;
        report_case("ok", job->c, result);
        return;
    }
    while (job->used > 0 && job->text[job->used - 1] == '\n')
        job->used--;
    job->text[job->used] = '\0';
    if (overdue)
        snprintf(result, sizeof result, "did not end. %s", job->text);
    else if (WIFSIGNALED(status))
        snprintf(result, sizeof result, "%s. %s", strsignal(WTERMSIG(status)), job->text);
    else
        snprintf(result, sizeof result, "%s", job->text);
    s->failed++;
    s->broken |= job->c->needs;
    report_case("FAIL", job->c, result);
}

static struct job *free_job(struct suite *s)
{
    for (size_t i = 0; i < s->jobs_max; i++) {
        if (s->jobs[i].pid == 0)
            return &s->jobs[i];
    }
    return NULL;
}

/* Waits until at least one job has ended, if any runs. */
static void wait_for_some(struct suite *s)
{
    bool ended = false, running = true;

    while (!ended && running) {
        struct pollfd polled[JOBS_MAX];
        running = false;
        for (size_t i = 0; i < s->jobs_max; i++) {
            polled[i] =
                (struct pollfd){.fd = s->jobs[i].pid ? s->jobs[i].fd : -1, .events = POLLIN};
            running |= s->jobs[i].pid != 0;
        }
        if (!running || poll(polled, s->jobs_max, 500) < 0)
            continue;
        for (size_t i = 0; i < s->jobs_max; i++) {
            struct job *job = &s->jobs[i];
            bool overdue = job->pid != 0 && now_ms() - job->began_ms > CASE_DEADLINE_MS;
            bool closed = polled[i].fd >= 0 && polled[i].revents != 0 && read_output(job);
            if (overdue || closed) {
                finish(s, job, overdue && !closed);
                ended = true;
            }
        }
    }
}

static bool is_running(const struct suite *s)
{
    for (size_t i = 0; i < s->jobs_max; i++) {
        if (s->jobs[i].pid != 0)
            return true;
    }
    return false;
}

static void skip(struct suite *s, const struct conformance_case *c)
{
    s->skipped++;
    report_skip(c, c->needs & ~s->can);
}

static void wait_for_all(struct suite *s)
{
    while (is_running(s))
        wait_for_some(s);
}

static void run(struct suite *s, const struct conformance_case *c, unsigned number)
{
    struct job *job;

    if (c->needs & ~s->can) {
        skip(s, c);
        return;
    }
    if (c->alone)
        wait_for_all(s);
    while ((job = free_job(s)) == NULL)
        wait_for_some(s);
    start(s, job, c, number);
    if (c->alone)
        wait_for_all(s);
}

static void run_all(struct suite *s)
{
    unsigned number = 0;

    for (size_t t = 0; t < TABLE_COUNT; t++) {
        for (const struct conformance_case *c = tables[t]; c->name != NULL; c++) {
            number++;
            if (s->only == NULL || fnmatch(s->only, c->name, 0) == 0)
                run(s, c, number);
        }
    }
    wait_for_all(s);
}

static int list(void)
{
    for (size_t t = 0; t < TABLE_COUNT; t++) {
        for (const struct conformance_case *c = tables[t]; c->name != NULL; c++)
            report_name(c);
    }
    return 0;
}

static int table(char **urls)
{
    report_table_head();
    for (; *urls != NULL; urls++) {
        fflush(stdout);
        report_row(*urls, ask_capabilities(*urls), 0);
    }
    return 0;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: conformance [-j N] [--only PATTERN] [--crowd N] [--in-turn] [--events] URL\n"
            "       conformance --table URL...\n"
            "       conformance --list\n");
    return 64;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"only", required_argument, NULL, 'o'},  {"list", no_argument, NULL, 'l'},
        {"table", no_argument, NULL, 't'},       {"jobs", required_argument, NULL, 'j'},
        {"crowd", required_argument, NULL, 'c'}, {"in-turn", no_argument, NULL, 'i'},
        {"events", no_argument, NULL, 'e'},      {NULL, 0, NULL, 0},
    };
    struct suite suite = {.jobs_max = 4, .crowd = 500};
    bool as_table = false;
    int opt;

    while ((opt = getopt_long(argc, argv, "j:", longs, NULL)) != -1) {
        if (opt == 'l')
            return list();
        if (opt == 't')
            as_table = true;
        else if (opt == 'o')
            suite.only = optarg;
        else if (opt == 'i')
            suite.in_turn = true;
        else if (opt == 'e')
            by_events = true;
        else if (opt == 'j')
            suite.jobs_max = strtoul(optarg, NULL, 10);
        else if (opt == 'c')
            suite.crowd = (int)strtol(optarg, NULL, 10);
        else
            return usage();
    }
    if (as_table && optind < argc)
        return table(argv + optind);
    if (as_table || optind != argc - 1 || suite.jobs_max < 1 || suite.jobs_max > JOBS_MAX ||
        suite.crowd < 10 || suite.crowd > 500)
        return usage();
    suite.url = argv[optind];
    suite.can = ask_capabilities(suite.url);
    if (getrandom(&suite.run, sizeof suite.run, 0) != sizeof suite.run)
        return 71;
    run_all(&suite);
    printf("\n");
    report_table_head();
    report_row(suite.url, suite.can, suite.broken);
    printf("\n%u passed, %u failed, %u skipped\n", suite.passed, suite.failed, suite.skipped);
    return suite.failed > 0 || suite.passed == 0;
}
