/* holdfast lock NAME: takes a lock that stays when the command ends, for scripts that cannot be
 * wrapped in `run`. Nobody renews it, so the lease must be chosen: --ttl or --never-expires. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "adopted_lock.h"
#include "base/duration.h"
#include "cli.h"
#include "entry.h"

#include "base/banned.h"

static bool shared, exclusive, nonblock, never_expires;
static int64_t wait_ms = HF_FOREVER, patience_ms, ttl_ms, lock_delay_ms, limit;
static int64_t conflict_status = EXIT_NOT_OBTAINED;
static const char *note;

static const struct cli_option options[] = {
    {'s', "shared", CLI_FLAG, &shared, NULL, NULL, 0, 0, "share the lock with other readers"},
    {'x', "exclusive", CLI_FLAG, &exclusive, NULL, NULL, 0, 0, "hold it alone (the default)"},
    {'e', "exclusive", CLI_FLAG, &exclusive, NULL, NULL, 0, 0, NULL},
    {'n', "nonblock", CLI_FLAG, &nonblock, NULL, NULL, 0, 0, "do not wait for the lock"},
    {'w', "wait", CLI_DURATION, &wait_ms, "DUR", NULL, 0, 0,
     "wait at most this long (0: same as -n)"},
    {0, "patience", CLI_DURATION, &patience_ms, "DUR", NULL, 1, HF__DURATION_MAX_MS,
     "keep trying this long while the store is down (op_timeout)"},
    {'E', "conflict-exit-code", CLI_NUMBER, &conflict_status, "N", NULL, 0, 255,
     "exit status if the lock was not obtained (1)"},
    {0, "limit", CLI_NUMBER, &limit, "N", NULL, 1, UINT32_MAX,
     "a semaphore: at most N holders; implies -s"},
    {0, "ttl", CLI_DURATION, &ttl_ms, "DUR", NULL, HF_TTL_MIN_MS, HF_TTL_MAX_MS,
     "the lease: the lock ends after it unless renewed"},
    {0, "never-expires", CLI_FLAG, &never_expires, NULL, NULL, 0, 0,
     "the lock stays until it is unlocked or broken"},
    {0, "lock-delay", CLI_DURATION, &lock_delay_ms, "DUR", NULL, 0, HF_DELAY_MAX_MS,
     "keep the lock closed this long if the lease runs out"},
    {0, "note", CLI_TEXT, &note, "TEXT", NULL, 0, 0, "shown to others beside the lock"},
    {0},
};

/* For the signal handler, which can be given nothing. */
static hf_cancel *cancel;
static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    caught = number;
    hf_cancel_fire(cancel);
}

/* A wait that is interrupted must leave the queue before the process ends. */
static bool watch_signals(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction action = {.sa_handler = on_signal}, old;

    if (hf_cancel_new(&cancel) != HF_OK)
        return false;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone is an error of the output */
    return true;
}

static void die_of_signal(void)
{
    signal(caught, SIG_DFL);
    raise(caught);
}

/* `lock` prints the ticket first and lets go of the handle last: whatever goes wrong between, the
 * lock is given back, since nobody would know its ticket. */
static int leave(const struct cli *cli, hf_lock *lock)
{
    hf_error err = {0};
    int status = caught != 0 ? EXIT_NOT_OBTAINED : cli_print_grant(cli, lock);

    if (status == 0 && hf_lock_detach(lock, &err) == HF_OK)
        return 0;
    if (status == 0)
        status = cli_fail_error(&err);
    hf_lock_release(lock, NULL);
    return status;
}

static int fail(const struct cli *cli, hf_client *client, const char *name, const hf_error *err)
{
    if (err->code == HF_CANCELLED && caught != 0)
        return EXIT_NOT_OBTAINED;
    if (err->code != HF_BUSY && err->code != HF_TIMEOUT)
        return cli_fail_error(err);
    if (!cli->quiet)
        cli_fail_conflict(0, err, client, name);
    return (int)conflict_status;
}

static int acquire(const struct cli *cli, hf_client *client, const char *name)
{
    hf_options o = {.size = sizeof o,
                    .mode = shared || limit > 0 ? HF_SHARED : HF_EXCLUSIVE,
                    .limit = (uint32_t)limit,
                    .ttl_ms = never_expires ? HF_NEVER : ttl_ms,
                    .wait_ms = nonblock ? 0 : wait_ms,
                    .patience_ms = patience_ms,
                    .lock_delay_ms = lock_delay_ms,
                    .by_hand = 1,
                    .confirmed = 1,
                    .note = note,
                    .cancel = cancel};
    hf_error err = {0};
    hf_lock *lock;

    if (hf_acquire(client, name, HF_NTS, &o, &lock, &err) != HF_OK)
        return fail(cli, client, name, &err);
    return leave(cli, lock);
}

static bool check(int argc, char **argv)
{
    if (!cli_check_operands(&cli_verb_lock, argc, 1) || !cli_check_name("lock", argv[0]))
        return false;
    if (exclusive && (shared || limit > 0)) {
        cli_fail_usage("lock", "choose one of -x and %s", shared ? "-s" : "--limit");
        return false;
    }
    if (nonblock && wait_ms != HF_FOREVER) {
        cli_fail_usage("lock", "choose one of -n and -w");
        return false;
    }
    if ((ttl_ms != 0) == never_expires) {
        cli_fail_usage("lock", "it stays after this command ends, so it needs either --ttl DUR or "
                               "--never-expires");
        return false;
    }
    if (note != NULL && strlen(note) > HF_NOTE_MAX) {
        cli_fail_usage("lock", "a note has at most %d bytes, this one has %zu", HF_NOTE_MAX,
                       strlen(note));
        return false;
    }
    return true;
}

/* As hf_lock_detach() has it. */
static bool can_stay(uint32_t can)
{
    return (can & HF_CAN_DETACH) || (never_expires && (can & HF_CAN_PERSIST));
}

static int run(struct cli *cli, int argc, char **argv)
{
    hf_client *client;

    if (!check(argc, argv))
        return EXIT_USAGE;
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    if (!(hf_capabilities(client) & HF_CAN_PROCESS))
        status = cli_refuse_process_store();
    else if (!can_stay(hf_capabilities(client)))
        status =
            cli_fail(EXIT_USAGE,
                     "this store cannot keep a %s after the command ends; use %s'holdfast run', "
                     "or another store",
                     hf_capabilities(client) & HF_CAN_PERSIST ? "lease" : "lock",
                     hf_capabilities(client) & HF_CAN_PERSIST ? "--never-expires, " : "");
    else if (!watch_signals())
        status = cli_fail(EXIT_MACHINE, "out of memory or descriptors");
    else
        status = acquire(cli, client, argv[0]);
    hf_close(client);
    if (caught != 0 && status != 0)
        die_of_signal();
    return status; /* `cancel` stays: a signal may still come */
}

const struct cli_verb cli_verb_lock = {
    .name = "lock",
    .operands = "NAME",
    .summary = "Take a lock and keep it after this command ends.",
    .options = options,
    .run = run,
};
