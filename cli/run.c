/* See run.h. The order is: catch signals, open the store, bid, start the command, watch both, give
 * the lock back when the command's group is gone, tell what became of it. Every step that fails
 * undoes the steps before it, in go(). */
#include "run_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "core/registry.h"
#include "environment.h"
#include "signals.h"

#include "base/banned.h"

static void fire(void *cancel)
{
    hf_cancel_fire(cancel);
}

/* What we open must not become the command's, or our own, standard input or output. The command
 * sees them closed, as they were: these are closed by exec. */
static bool fill_standard_fds(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd)
            return false;
    }
    return true;
}

/* The embedded store is named too: the command may have another home, or be another user. */
static int name_store(struct run *r)
{
    hf_error err = {0};

    if (r->cli->url == NULL && hf__embedded_url(&r->embedded, &err) != HF_OK)
        return cli_fail_error(&err);
    r->url = r->embedded ? r->embedded : r->cli->url;
    r->secrets_fd = environment_secrets(r->url);
    if (r->secrets_fd < -1)
        return cli_fail(EXIT_MACHINE, "cannot keep the password for the command: %s",
                        strerror(-r->secrets_fd));
    return 0;
}

/* What is needed at the end only must not be missed then. */
static int check_store(const struct run *r)
{
    const struct run_settings *set = r->set;
    uint32_t can = hf_capabilities(r->client);

    if (set->at_least_ms > 0 && !(can & HF_CAN_AT_LEAST))
        return cli_fail(hf_code_exit_status(HF_UNSUPPORTED),
                        "this store cannot keep a released lock closed (--at-least, --every); see "
                        "'holdfast stores'");
    if ((set->value != NULL || set->value_file != NULL) && !(can & HF_CAN_VALUE))
        return cli_fail(hf_code_exit_status(HF_UNSUPPORTED),
                        "this store keeps no values; see 'holdfast stores'");
    return 0;
}

static int prepare(struct run *r)
{
    /* A guard holds nothing else: it is there before anything is opened. */
    if (!r->set->guard)
        inherited_fds_note(&r->inherited);
    if (!fill_standard_fds())
        return cli_fail(EXIT_MACHINE, "cannot open /dev/null: %s", strerror(errno));
    if (hf_cancel_new(&r->cancel) != HF_OK)
        return cli_fail(EXIT_MACHINE, "out of memory or descriptors");
    r->signal_fd = signals_catch(fire, r->cancel);
    if (r->signal_fd < 0)
        return cli_fail(EXIT_MACHINE, "cannot watch signals: %s", strerror(-r->signal_fd));
    if (r->set->wanted_signal != 0 && (r->wanted_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return cli_fail(EXIT_MACHINE, "no descriptor is left: %s", strerror(errno));
    terminal_open(&r->terminal);
    r->plan = (struct child_plan){
        .argv = r->set->argv, .terminal_fd = r->terminal.fd, .cores = r->cli->cores};
    int error = r->set->guard ? guard_start(&r->guard, &r->plan) : 0;
    if (error != 0)
        return cli_fail(EXIT_MACHINE, "cannot start the guard: %s", strerror(error));
    int status = name_store(r);
    if (status == 0)
        status = cli_open(r->cli, &r->client);
    if (status == 0 && !(hf_capabilities(r->client) & HF_CAN_PROCESS))
        status = cli_refuse_process_store();
    return status == 0 ? check_store(r) : status;
}

static int fail_start(const struct run_settings *set, int error)
{
    if (error == ECHILD)
        return cli_fail(EXIT_MACHINE, "cannot run '%s': the guard was killed", set->argv[0]);
    if (error == ENOENT)
        return cli_fail(EXIT_NO_SUCH_COMMAND, "cannot run '%s': there is no such command%s",
                        set->argv[0],
                        strchr(set->argv[0], '/') ? ", or its interpreter is missing" : "");
    return cli_fail(EXIT_CANNOT_EXECUTE, "cannot run '%s': %s", set->argv[0], strerror(error));
}

static void look(void *ctx, struct leash_view *ret_view)
{
    struct run *r = ctx;

    ret_view->remaining_ms = run_remaining_ms(r);
    ret_view->cause = run_cause(r);
    if (ret_view->cause != HF_CAUSE_NONE && r->lost_ns == 0)
        r->lost_ns = run_now_ns();
}

static void put_on_leash(struct run *r)
{
    const struct run_settings *set = r->set;
    struct leash_view view;

    r->leash = (struct leash){
        .policy = set->policy,
        .kill_after_ms = set->kill_after_ms,
        .margin_ms = set->margin_ms,
        .hold_until_ns = set->max_hold_ms && set->policy != LEASH_IGNORE
                             ? r->obtained_ns + set->max_hold_ms * HF__NS_PER_MS
                             : INT64_MAX,
    };
    look(r, &view);
    guard_set_deadline(&r->guard, leash_guard_ns(&r->leash, run_now_ns(), &view));
}

static int start(struct run *r)
{
    bool has_value = r->set->value != NULL || r->set->value_file != NULL;
    struct environment_lock held = {.url = r->url,
                                    .mode = r->set->mode,
                                    .lock = r->lock,
                                    .secrets_fd = r->secrets_fd,
                                    .value = has_value ? r->value : NULL,
                                    .value_len = r->value_len,
                                    .doubt = r->doubt,
                                    .others = r->others,
                                    .other_count = r->other_count};
    char **environment = environment_new(&held);
    if (!environment)
        return cli_fail(EXIT_MACHINE, "out of memory");
    put_on_leash(r);
    signals_catch_stop();
    r->terminal.lent = terminal_to_lend(&r->terminal);
    int error;
    if (r->guard.fd >= 0) {
        error = guard_run(&r->guard, environment, r->terminal.lent, &r->child);
    } else {
        r->plan.envp = environment;
        if (!r->terminal.lent)
            r->plan.terminal_fd = -1;
        inherited_fds_only(&r->inherited);
        error = child_start(&r->plan, &r->child);
    }
    environment_free(environment);
    if (error != 0)
        return fail_start(r->set, error);
    r->status.started = true;
    return 0;
}

static void verify(void *ctx)
{
    run_renew(ctx);
}

void run_explain(struct run *r, hf_cause cause)
{
    hf_error err;

    if (cause == HF_CAUSE_EXPIRED && hf_lock_error(r->lock, &err) != HF_OK)
        snprintf(r->status.error, sizeof r->status.error, "%s", err.text);
    snprintf(r->why, sizeof r->why, "%s%s%s", hf_cause_text(cause),
             r->status.error[0] != '\0' ? ": " : "", r->status.error);
}

static void tell(void *ctx, enum supervise_event event, const struct leash *leash)
{
    struct run *r = ctx;
    const char *name = r->shown;
    int64_t left_ms = run_remaining_ms(r);
    const char *what = left_ms > 0 ? "given up" : "lost";

    run_explain(r, leash->cause);
    switch (event) {
    case SUPERVISE_LOST:
        status_notice("'%s' is lost: %s; the command goes on (--on-lost ignore)", name, r->why);
        break;
    case SUPERVISE_SIGNALLED:
        status_notice("'%s' is %s: %s; the command was sent signal %d", name, what, r->why,
                      r->set->signal);
        break;
    case SUPERVISE_KILLED:
        status_notice("'%s' is %s: %s; the command was killed", name, what, r->why);
        break;
    case SUPERVISE_RUNS_ON:
        if (left_ms > 0)
            status_notice("'%s' is %s: %s; the command could not be killed, since pid %lld belongs "
                          "to another user: it runs on, and the lock is kept while it can be",
                          name, what, r->why, (long long)r->watched.untouchable);
        else
            status_notice("'%s' is %s: %s; what could not be killed runs on without the lock: pid "
                          "%lld, which belongs to another user",
                          name, what, r->why, (long long)r->watched.untouchable);
        break;
    case SUPERVISE_STOPPING:
        if (!r->cli->quiet && left_ms != INT64_MAX)
            status_notice("stopped; '%s' will be lost in %lld.%lld s", name,
                          (long long)(left_ms / 1000), (long long)(left_ms % 1000 / 100));
        break;
    }
}

static int watch(struct run *r)
{
    const struct run_settings *set = r->set;

    r->watched = (struct supervise){
        .child = &r->child,
        .terminal = &r->terminal,
        .guard = &r->guard,
        .leash = &r->leash,
        .lock = {run_lost_fd(r), look, verify, tell, r},
        .signal = set->signal,
        .signal_fd = r->signal_fd,
        .ttl_ms = set->ttl_ms,
        .wanted_fd = r->wanted_fd,
        .wanted_signal = set->wanted_signal,
    };
    int error = supervise(&r->watched);
    return error ? cli_fail(EXIT_MACHINE, "cannot watch the command: %s", strerror(error)) : 0;
}

static int command_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

bool run_ended_well(const struct run *r)
{
    return r->status.ended && WIFEXITED(r->status.wait_status) &&
           WEXITSTATUS(r->status.wait_status) == 0;
}

static void take_terminal_back(struct run *r)
{
    bool killed = r->status.ended && WIFSIGNALED(r->status.wait_status);

    r->had_terminal = r->terminal.lent;
    if (r->terminal.lent && killed)
        terminal_mend(&r->terminal);
    terminal_take(&r->terminal);
}

/* Whose status it is. A loss that was noticed at the end only has not been told yet. */
static int final_status(struct run *r)
{
    struct status *status = &r->status;

    if (status->lost && r->set->policy != LEASH_IGNORE) {
        if (r->leash.cause == HF_CAUSE_NONE)
            cli_fail(0, "'%s' was lost while the command ran: %s", r->shown, r->why);
        return EXIT_LOCK_LOST;
    }
    status->of_command = true;
    return command_status(status->wait_status);
}

static void report(struct run *r)
{
    int fd = r->set->status_fd;

    if (fd < 0 && r->cli->json)
        fd = STDERR_FILENO;
    if (fd >= 0 && !status_write(fd, &r->status))
        cli_fail(0, "cannot write to --status-fd %d: %s", fd, strerror(errno));
}

static int use_lock(struct run *r)
{
    int status = run_open_value(r);

    if (status == 0)
        status = run_freshen(r);
    if (status == 0)
        status = start(r);
    return status == 0 ? watch(r) : status;
}

static int go(struct run *r)
{
    int status = prepare(r);

    if (status == 0)
        status = run_acquire(r);
    if (status == 0 && r->lock != NULL) /* with --every it may be somebody else's turn */
        status = use_lock(r);
    r->status.ended = r->child.ended;
    r->status.wait_status = r->child.wait_status;
    take_terminal_back(r);
    /* It ends while the lock is given back. */
    guard_dismiss(&r->guard);
    if (status == 0)
        status = run_keep_value(r);
    run_release(r);
    return r->status.ended && status == 0 ? final_status(r) : status;
}

/* A shell ends a loop or a script when what it runs is ended by SIGINT, so that we end by it too,
 * on a terminal. If Ctrl-C went to the command alone, since it had the terminal, the rest of our
 * process group (a script around us) has to see it as well. */
static void pass_interrupt_up(const struct run *r)
{
    const struct status *status = &r->status;
    bool killed = status->ended && WIFSIGNALED(status->wait_status);

    if (!terminal_is_ours(&r->terminal) || status->status != 128 + SIGINT ||
        (status->started && !killed))
        return;
    signal(SIGINT, SIG_DFL);
    if (r->had_terminal)
        kill(0, SIGINT);
    else
        raise(SIGINT);
}

int run(const struct cli *cli, const struct run_settings *settings)
{
    struct run r = {
        .cli = cli,
        .set = settings,
        .terminal = {.fd = -1},
        .guard = {.fd = -1},
        .secrets_fd = -1,
        .wanted_fd = -1,
        .lost_fd = -1,
        .status = {.name = settings->name},
    };

    hf__printable(settings->name, strlen(settings->name), r.shown, sizeof r.shown);
    r.status.status = go(&r);
    hf_close(r.client);
    guard_clear(&r.guard);
    report(&r);
    pass_interrupt_up(&r);
    terminal_close(&r.terminal);
    /* The handler may still run: what it fires is freed only when it has forgotten it. */
    signals_forget_ending();
    hf_cancel_free(r.cancel);
    inherited_fds_clear(&r.inherited);
    if (r.secrets_fd >= 0)
        close(r.secrets_fd);
    if (r.wanted_fd >= 0)
        close(r.wanted_fd);
    if (r.lost_fd >= 0)
        close(r.lost_fd);
    free(r.embedded);
    return r.status.status;
}
