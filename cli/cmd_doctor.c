/* holdfast doctor: looks at the live store and says which clauses of the contract hold there.
 *
 * Three parts: what the store itself finds, a trial lock that is taken and released, and the
 * capabilities. The trial uses one fixed name, so that it leaves at most one idle record, and
 * shares it, so that two doctors do not wait for each other. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "findings.h"

#include "base/banned.h"

#define TRIAL_NAME "holdfast/doctor"

struct doctor {
    const struct cli *cli;
    size_t warnings, problems;
};

static void print_finding(const struct cli *cli, int level, const char *clause, const char *text)
{
    static const enum cli_paint paints[] = {PAINT_GREEN, PAINT_DIM, PAINT_YELLOW, PAINT_RED};

    printf("%s%-8s%s %-4s ", cli_paint(cli, paints[level]), cli_level_name(level),
           cli_paint(cli, PAINT_NONE), clause != NULL ? clause : "");
    cli_print_text(stdout, text);
    putchar('\n');
}

static void print_finding_json(int level, const char *clause, const char *text)
{
    struct cli_json json = {.out = stdout};

    cli_json_finding(&json, level, clause, text);
    cli_json_end(&json);
}

static void found(int level, const char *clause, const char *text, void *arg)
{
    struct doctor *doctor = arg;

    if (level < CLI_FINE || level > CLI_PROBLEM)
        level = CLI_PROBLEM;
    doctor->warnings += level == CLI_WARNING;
    doctor->problems += level == CLI_PROBLEM;
    if (doctor->cli->json)
        print_finding_json(level, clause, text);
    else if (!doctor->cli->quiet || level >= CLI_WARNING)
        print_finding(doctor->cli, level, clause, text);
}

static double milliseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void try_lock(struct doctor *doctor, hf_client *client)
{
    hf_options o = {.size = sizeof o, .ttl_ms = 10000, .wait_ms = 5000, .note = "holdfast doctor"};
    double start = milliseconds();
    hf_error err = {0};
    hf_lock *lock;
    char text[sizeof err.text + 64];

    if (hf_capabilities(client) & HF_CAN_SHARE)
        o.mode = HF_SHARED;
    int code = hf_acquire(client, TRIAL_NAME, HF_NTS, &o, &lock, &err);
    if (code == HF_OK)
        code = hf_lock_release(lock, &err);
    if (code != HF_OK) {
        snprintf(text, sizeof text, "a trial lock failed: %s", err.text);
        found(CLI_PROBLEM, "C6", text, doctor);
        return;
    }
    snprintf(text, sizeof text, "a trial lock was taken and released in %.2f ms",
             milliseconds() - start);
    found(CLI_FINE, NULL, text, doctor);
}

/* The last line: what somebody wants to know who reads only one. */
static void tell_verdict(const struct doctor *doctor)
{
    struct cli_json json = {.out = stdout};
    const char *verdict = cli_verdict(doctor->problems, doctor->warnings);

    if (doctor->cli->json) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "verdict", verdict);
        cli_json_number(&json, "problems", (int64_t)doctor->problems);
        cli_json_number(&json, "warnings", (int64_t)doctor->warnings);
        cli_json_close(&json, '}');
        cli_json_end(&json);
    } else if (!doctor->cli->quiet) {
        printf("%sverdict%s       %s (%zu problem%s, %zu warning%s)\n",
               cli_paint(doctor->cli, PAINT_BOLD), cli_paint(doctor->cli, PAINT_NONE), verdict,
               doctor->problems, doctor->problems == 1 ? "" : "s", doctor->warnings,
               doctor->warnings == 1 ? "" : "s");
    }
}

static int examine(struct doctor *doctor, hf_client *client)
{
    hf_error err = {0};

    if (hf_diagnose(client, found, doctor, &err) != HF_OK)
        return cli_fail_error(&err);
    try_lock(doctor, client);
    cli_find_capabilities(hf_capabilities(client), found, doctor);
    tell_verdict(doctor);
    return doctor->problems > 0 ? 1 : 0;
}

static int visit(const struct cli *cli)
{
    struct doctor doctor = {.cli = cli};
    hf_client *client;
    int status = cli_open(cli, &client);

    if (status != 0)
        return status;
    status = examine(&doctor, client);
    hf_close(client);
    return status;
}

/* A store is examined before it is set as anybody's default: so its URL may be the operand. */
static int run(struct cli *cli, int argc, char **argv)
{
    struct cli there = *cli;

    if (argc == 0)
        return visit(cli);
    if (argc > 1)
        return cli_fail_usage("doctor", "there are too many operands");
    char *url = cli_take_url(argv[0]);
    if (url == NULL)
        return cli_fail(EXIT_MACHINE, "out of memory");
    there.url = url;
    int status = visit(&there);
    free(url);
    return status;
}

const struct cli_verb cli_verb_doctor = {
    .name = "doctor",
    .operands = "[URL]",
    .summary = "Examine the live store and say which guarantees it gives.",
    .run = run,
};
