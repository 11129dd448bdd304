/* holdfast run: flock(1) across machines. Checks the command line; run.c does the rest. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "run.h"

#include "base/banned.h"

#define KILL_AFTER_USUAL_MS 5000

/* `run`, or `elect`, which is a `run` with fewer choices. */
static const char *verb = "run";

static struct {
    bool shared, exclusive, nonblock, never, guard;
    bool close, no_fork; /* nothing follows from them */
    int64_t wait_ms, patience_ms, conflict, limit, ttl_ms, delay_ms, max_hold_ms, kill_after_ms,
        status_fd;
    int signal, on_lost;
    const char *shell_command, *note;
    int64_t at_least_ms, every_ms;
    int wanted_signal;
    const char *value, *value_file;
    struct cli_names with;
} given = {
    .wait_ms = HF_FOREVER,
    .conflict = EXIT_NOT_OBTAINED,
    .kill_after_ms = -1,
    .status_fd = -1,
    .signal = SIGTERM,
    .guard = true,
};

static const struct cli_option options[] = {
    {'s', "shared", CLI_FLAG, &given.shared, NULL, NULL, 0, 0, "share the lock with other readers"},
    {'x', "exclusive", CLI_FLAG, &given.exclusive, NULL, NULL, 0, 0, "hold it alone (the default)"},
    {'e', "exclusive", CLI_FLAG, &given.exclusive, NULL, NULL, 0, 0, NULL},
    {'n', "nonblock", CLI_FLAG, &given.nonblock, NULL, NULL, 0, 0, "do not wait for the lock"},
    {'w', "wait", CLI_DURATION, &given.wait_ms, "DUR", NULL, 0, 0,
     "wait at most this long (0: same as -n)"},
    {0, "patience", CLI_DURATION, &given.patience_ms, "DUR", NULL, 1, HF__DURATION_MAX_MS,
     "keep trying this long while the store is down (op_timeout)"},
    {'E', "conflict-exit-code", CLI_NUMBER, &given.conflict, "N", NULL, 0, 255,
     "exit status if the lock was not obtained (1)"},
    {'c', "command", CLI_TEXT, &given.shell_command, "COMMAND", NULL, 0, 0,
     "run this command line with $SHELL -c, or /bin/sh"},
    {'o', "close", CLI_FLAG, &given.close, NULL, NULL, 0, 0,
     "accepted as in flock; no effect: the command gets no descriptor"},
    {'F', "no-fork", CLI_FLAG, &given.no_fork, NULL, NULL, 0, 0,
     "accepted as in flock; no effect: holdfast stays to renew"},
    {0, "limit", CLI_NUMBER, &given.limit, "N", NULL, 1, UINT32_MAX,
     "a semaphore: at most N holders"},
    {0, "ttl", CLI_DURATION, &given.ttl_ms, "DUR", NULL, HF_TTL_MIN_MS, HF_TTL_MAX_MS,
     "the lease; renewed while the command runs (30s)"},
    {0, "never-expires", CLI_FLAG, &given.never, NULL, NULL, 0, 0,
     "no lease: if this machine dies, break the lock by hand"},
    {0, "lock-delay", CLI_DURATION, &given.delay_ms, "DUR", NULL, 0, HF_DELAY_MAX_MS,
     "keep the lock closed this long if we vanish"},
    {0, "max-hold", CLI_DURATION, &given.max_hold_ms, "DUR", NULL, 1, HF__DURATION_MAX_MS,
     "stop the command after this time"},
    {0, "signal", CLI_SIGNAL, &given.signal, "SIG", NULL, 0, 0,
     "signal to send first when the lock ends (TERM)"},
    {0, "kill-after", CLI_DURATION, &given.kill_after_ms, "DUR", NULL, 0, HF_TTL_MAX_MS,
     "time from that signal to SIGKILL (5s, at most ttl/4)"},
    {0, "on-lost", CLI_CHOICE, &given.on_lost, "WHAT", "kill|term|ignore", 0, 0,
     "kill: signal, then SIGKILL; term: signal only; ignore: report only"},
    {0, "no-guard", CLI_UNFLAG, &given.guard, NULL, NULL, 0, 0,
     "no second process to kill the command if holdfast is killed"},
    {0, "status-fd", CLI_NUMBER, &given.status_fd, "N", NULL, 0, INT32_MAX,
     "write the outcome to this descriptor, as one line of JSON"},
    {0, "note", CLI_TEXT, &given.note, "TEXT", NULL, 0, 0,
     "shown to others beside the lock (the command's name)"},
    {0, "with", CLI_NAMES, &given.with, "NAME", NULL, 0, 0,
     "hold this lock too, all or none; may be given several times"},
    {0, "at-least", CLI_DURATION, &given.at_least_ms, "DUR", NULL, 1, HF_AT_LEAST_MAX_MS,
     "keep the lock closed until so long after it was taken"},
    {0, "every", CLI_DURATION, &given.every_ms, "DUR", NULL, 1, HF_AT_LEAST_MAX_MS,
     "run it once in this time, on whichever machine asks first"},
    {0, "on-wanted", CLI_SIGNAL, &given.wanted_signal, "SIG", NULL, 0, 0,
     "signal to send when others wait for the lock"},
    {0, "value", CLI_TEXT, &given.value, "TEXT", NULL, 0, 0,
     "write this value beside the lock before the command runs"},
    {0, "value-file", CLI_TEXT, &given.value_file, "FILE", NULL, 0, 0,
     "put the value into this file; keep what the command leaves in it"},
    {0},
};

/* `elect` leads as long as the lock lives: its command ends before the lease does. */
static const struct cli_option elect_options[] = {
    {0, "value", CLI_TEXT, &given.value, "TEXT", NULL, 0, 0,
     "what others read while it leads, such as its address"},
    {'w', "wait", CLI_DURATION, &given.wait_ms, "DUR", NULL, 0, 0,
     "stand by for at most this long"},
    {0, "patience", CLI_DURATION, &given.patience_ms, "DUR", NULL, 1, HF__DURATION_MAX_MS,
     "keep trying this long while the store is down (op_timeout)"},
    {0, "ttl", CLI_DURATION, &given.ttl_ms, "DUR", NULL, HF_TTL_MIN_MS, HF_TTL_MAX_MS,
     "the lease; renewed while the command runs (30s)"},
    {0, "signal", CLI_SIGNAL, &given.signal, "SIG", NULL, 0, 0,
     "signal to send first when the lock ends (TERM)"},
    {0, "kill-after", CLI_DURATION, &given.kill_after_ms, "DUR", NULL, 0, HF_TTL_MAX_MS,
     "time from that signal to SIGKILL (5s, at most ttl/4)"},
    {0, "on-wanted", CLI_SIGNAL, &given.wanted_signal, "SIG", NULL, 0, 0,
     "signal to send when others stand by"},
    {0, "status-fd", CLI_NUMBER, &given.status_fd, "N", NULL, 0, INT32_MAX,
     "write the outcome to this descriptor, as one line of JSON"},
    {0, "note", CLI_TEXT, &given.note, "TEXT", NULL, 0, 0,
     "shown to others beside the lock (the command's name)"},
    {0},
};

/* The name of the command, cut to what a note may have, between characters. Its arguments may be
 * nobody's business: everybody who may look at the lock sees the note. */
static void describe(const char *command, char *buf, size_t size)
{
    const char *slash = strrchr(command, '/'), *name = slash && slash[1] ? slash + 1 : command;
    size_t len = strlen(name);

    if (len >= size) {
        len = size - 1;
        while (len > 0 && ((unsigned char)name[len] & 0xc0) == 0x80)
            len--;
    }
    memcpy(buf, name, len);
    buf[len] = '\0';
}

static int check_leases(struct run_settings *set)
{
    char kill_after[32], ttl[32], longest[32], shortest[32];

    if (given.never && given.ttl_ms != 0)
        return cli_fail_usage(verb, "choose one of --ttl and --never-expires");
    set->ttl_ms = given.never ? HF_NEVER : given.ttl_ms ? given.ttl_ms : HF_TTL_DEFAULT_MS;
    set->margin_ms = leash_margin_ms(given.never ? HF_TTL_DEFAULT_MS : set->ttl_ms);
    set->kill_after_ms = given.kill_after_ms;
    if (set->kill_after_ms < 0) {
        set->kill_after_ms = KILL_AFTER_USUAL_MS;
        if (!given.never && set->ttl_ms / 4 < set->kill_after_ms)
            set->kill_after_ms = set->ttl_ms / 4;
    }
    if (given.never || given.on_lost == LEASH_IGNORE ||
        set->kill_after_ms <= leash_longest_ms(set->ttl_ms))
        return 0;
    hf__format_duration(set->kill_after_ms, kill_after, sizeof kill_after);
    hf__format_duration(set->ttl_ms, ttl, sizeof ttl);
    hf__format_duration(leash_longest_ms(set->ttl_ms), longest, sizeof longest);
    hf__format_duration(leash_shortest_ttl_ms(set->kill_after_ms), shortest, sizeof shortest);
    return cli_fail_usage(verb,
                          "--kill-after %s does not fit into --ttl %s: half of the lease is for "
                          "renewing it, and both the signal and SIGKILL must come before its end; "
                          "give at most --kill-after %s, or at least --ttl %s",
                          kill_after, ttl, longest, shortest);
}

static int check_mode(struct run_settings *set)
{
    if (given.exclusive && given.shared)
        return cli_fail_usage(verb, "choose one of -s and -x");
    if (given.exclusive && given.limit != 0)
        return cli_fail_usage(verb, "a lock with --limit is shared: leave out -x");
    if (given.nonblock && given.wait_ms != HF_FOREVER)
        return cli_fail_usage(verb, "choose one of -n and -w");
    set->mode = given.shared || given.limit != 0 ? HF_SHARED : HF_EXCLUSIVE;
    set->limit = (uint32_t)given.limit;
    set->wait_ms = given.nonblock ? 0 : given.wait_ms;
    return 0;
}

/* A firing that is late or early by a tenth neither doubles nor loses a turn. */
static int check_every(struct run_settings *set)
{
    set->at_least_ms = given.at_least_ms;
    if (given.every_ms == 0)
        return 0;
    if (given.at_least_ms != 0)
        return cli_fail_usage(verb, "choose one of --at-least and --every");
    if (given.wait_ms != HF_FOREVER)
        return cli_fail_usage(verb, "--every does not wait: leave out -w");
    if (given.conflict != EXIT_NOT_OBTAINED)
        return cli_fail_usage(verb, "with --every a busy lock is no failure: leave out -E");
    set->once = true;
    set->wait_ms = 0;
    set->at_least_ms = given.every_ms - given.every_ms / 10;
    return 0;
}

static int check_value(struct run_settings *set)
{
    set->value = given.value;
    set->value_file = given.value_file;
    if (given.value != NULL && given.value_file != NULL)
        return cli_fail_usage(verb, "choose one of --value and --value-file");
    if ((given.value != NULL || given.value_file != NULL) && set->mode == HF_SHARED)
        return cli_fail_usage(verb,
                              "a shared lock cannot write the value: leave out -s or --limit");
    if (given.value != NULL && strlen(given.value) > HF_VALUE_MAX)
        return cli_fail_usage(verb, "the value is too long; at most %d bytes", HF_VALUE_MAX);
    return 0;
}

static int check_status_fd(struct run_settings *set)
{
    set->status_fd = (int)given.status_fd;
    if (set->status_fd < 0)
        return 0;
    int flags = fcntl(set->status_fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return cli_fail_usage(verb, "--status-fd %d is not open for writing; in a shell: %d>FILE",
                              set->status_fd, set->status_fd);
    /* It is for us. Standard output and standard error stay the command's as well. */
    if (set->status_fd > 2)
        fcntl(set->status_fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

/* NAME COMMAND..., NAME -- COMMAND..., -c COMMAND NAME, or NAME -c COMMAND as flock(1) has it. */
static int find_command(int argc, char **argv, char **shell, char ***ret_command)
{
    const char *text = given.shell_command, *user_shell = getenv("SHELL");
    int rest = 1;

    if (argc > 1 && argv[1][0] == '-' && strcmp(argv[1], "--") != 0 && strcmp(argv[1], "-c") != 0)
        return cli_fail_usage(verb,
                              "options of '%s' stand before the name: '%s'; a command that begins "
                              "with '-' needs a '--' before it",
                              verb, argv[1]);
    if (argc > 1 && strcmp(argv[1], "--") == 0)
        rest = 2;
    if (!text && argc == 3 && strcmp(argv[1], "-c") == 0) {
        text = argv[2];
        rest = 3;
    }
    if (!text && argc > 1 && strcmp(argv[1], "-c") == 0)
        return cli_fail_usage(verb, "-c needs one command: holdfast run NAME -c 'COMMAND'");
    if (text && argc > rest)
        return cli_fail_usage(verb, "give either -c or a command, not both");
    if (!text && argc <= rest)
        return cli_fail_usage(verb, "a command is missing: holdfast %s NAME -- COMMAND", verb);
    *ret_command = argv + rest;
    if (!text)
        return 0;
    shell[0] = (char *)(user_shell && *user_shell ? user_shell : "/bin/sh");
    shell[1] = (char *)"-c";
    shell[2] = (char *)text;
    *ret_command = shell;
    return 0;
}

static int run_verb(struct cli *cli, int argc, char **argv)
{
    struct run_settings set = {
        .with = &given.with,
        .patience_ms = given.patience_ms,
        .lock_delay_ms = given.delay_ms,
        .max_hold_ms = given.max_hold_ms,
        .policy = (enum leash_policy)given.on_lost,
        .signal = given.signal,
        .guard = given.guard,
        .conflict_status = (int)given.conflict,
    };
    char *shell[4] = {NULL};
    char note[HF_NOTE_MAX + 1];
    int status;

    if (argc < 1)
        return cli_fail_usage(verb, "a name and a command are missing: holdfast %s NAME -- COMMAND",
                              verb);
    /* The options stood before: what they left behind is not the command's. */
    argv[argc] = NULL;
    set.name = argv[0];
    if (!cli_check_name(verb, set.name))
        return EXIT_USAGE;
    if ((status = find_command(argc, argv, shell, &set.argv)) != 0 ||
        (status = check_mode(&set)) != 0 || (status = check_leases(&set)) != 0 ||
        (status = check_every(&set)) != 0 || (status = check_value(&set)) != 0 ||
        (status = check_status_fd(&set)) != 0)
        return status;
    set.wanted_signal = given.wanted_signal;
    describe(set.argv[0], note, sizeof note);
    set.note = given.note ? given.note : note;
    return run(cli, &set);
}

static int elect_verb(struct cli *cli, int argc, char **argv)
{
    verb = "elect";
    if (given.value == NULL)
        return cli_fail_usage(verb, "what is the leader's address? holdfast elect --value ADDRESS "
                                    "NAME -- COMMAND");
    return run_verb(cli, argc, argv);
}

const struct cli_verb cli_verb_elect = {
    .name = "elect",
    .operands = "NAME [--] COMMAND [ARG...]",
    .summary = "Run a command on one machine at a time, and tell where.",
    .options = elect_options,
    .operands_end_options = true,
    .run = elect_verb,
};

const struct cli_verb cli_verb_run = {
    .name = "run",
    .operands = "NAME [--] COMMAND [ARG...]",
    .summary = "Run a command while holding a lock.",
    .options = options,
    .operands_end_options = true,
    .run = run_verb,
};
