/* Opening a client, and the door through which every call on it goes. Closing: close.c. */
#include "core_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core_abi_struct.h"
#include "core_registry.h"
#include "core_started.h"

#include "base_banned.h"

#define WORKER_STACK (512 * 1024)

static const char *user_name(char buf[24])
{
    const char *user = geteuid() == 0 ? "root" : secure_getenv("USER");

    if (user != NULL && *user != '\0')
        return user;
    snprintf(buf, 24, "%u", (unsigned)geteuid());
    return buf;
}

/* Not through getpwuid(): loading the name service would cost the command more than the lock. */
static int describe_self(hf_client *client, const hf_client_options *opt)
{
    char host[128] = "", number[24];
    const char *user = user_name(number);
    const char *program = opt->program != NULL ? opt->program : program_invocation_short_name;
    const char *modules = opt->modules != NULL ? opt->modules : "";

    gethostname(host, sizeof host - 1);
    if (asprintf(&client->self_text, "%.127s%c%.63s%c%.127s%c%s", host, '\0', user, '\0', program,
                 '\0', modules) < 0) {
        client->self_text = NULL;
        return HF_NO_MEMORY;
    }
    client->self.host = client->self_text;
    client->self.user = client->self.host + strlen(client->self.host) + 1;
    client->self.program = client->self.user + strlen(client->self.user) + 1;
    client->host.modules = client->self.program + strlen(client->self.program) + 1;
    client->self.note = "";
    client->self.pid = client->pid;
    return 0;
}

static void free_client(hf_client *client)
{
    struct hf__workers *workers[] = {&client->renewer, &client->withdrawer, &client->notifier,
                                     &client->runner};

    for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++)
        hf__workers_clear(workers[i]);
    hf__table_clear(&client->by_tag);
    hf__heap_clear(&client->keeper.timers);
    hf__table_clear(&client->by_ticket);
    hf__table_clear(&client->by_owner);
    hf__table_clear(&client->idle);
    free(client->calm);
    pthread_cond_destroy(&client->changed);
    pthread_mutex_destroy(&client->mutex);
    free(client->self_text);
    hf__log_free(client->log);
    free(client->meter);
    hf__fork_guard_clear(client);
    free(client);
}

static hf_client *new_client(const struct hf_env *env)
{
    hf_client *client = calloc(1, sizeof *client);

    if (client == NULL)
        return NULL;
    client->env = env != NULL ? env : &hf__system_env;
    hf__fork_guard_init(client);
    client->refs = 1;
    pthread_mutex_init(&client->mutex, NULL);
    pthread_cond_init(&client->changed, NULL);
    hf__keeper_init(&client->keeper);
    hf__wake_reader_init(&client->wake_reader);
    client->renewer = (struct hf__workers){.client = client,
                                           .thread_name = "hf-renewer",
                                           .stack = WORKER_STACK,
                                           .most = HF__WORKERS_MAX,
                                           .work = hf__renewer_work};
    client->withdrawer = (struct hf__workers){.client = client,
                                              .thread_name = "hf-withdrawer",
                                              .stack = WORKER_STACK,
                                              .most = 1,
                                              .work = hf__withdrawer_work};
    client->notifier = (struct hf__workers){
        .client = client, .thread_name = "hf-notifier", .most = 1, .work = hf__notifier_work};
    client->runner = (struct hf__workers){.client = client,
                                          .thread_name = "hf-runner",
                                          .stack = WORKER_STACK,
                                          .most = HF__WORKERS_MAX,
                                          .work = hf__runner_work};
    client->event_fd = -1;
    hf__workers_init(&client->renewer);
    hf__workers_init(&client->withdrawer);
    hf__workers_init(&client->notifier);
    hf__workers_init(&client->runner);
    return client;
}

/* What every store's URL may say. The registry has checked, or will refuse, the values. */
static int read_common_options(hf_client *client, const char *text, hf_error *err)
{
    struct hf__url url = {0};
    int r = text != NULL ? hf__url_parse(text, &url, err) : 0;

    if (r < 0)
        return r;
    client->op_timeout_ms = hf__url_number(&url, "op_timeout");
    client->retain_ms = hf__url_number(&url, "retain");
    client->history = hf__url_number(&url, "history");
    client->retire_ms = 10 * client->op_timeout_ms < 60000 ? 60000 : 10 * client->op_timeout_ms;
    hf__url_clear(&url);
    return 0;
}

/* What cannot be written down is refused, or a trail that is empty would look like a quiet night. */
static int check_history(hf_client *client, hf_error *err)
{
    if (client->history == 0 || client->store->capabilities & HF_CAN_HISTORY)
        return 0;
    hf__fail(err, HF_UNSUPPORTED, "%s keeps no history: leave history=%lld out of the URL",
             client->store->type->name, (long long)client->history);
    client->store->type->close(client->store);
    return HF_UNSUPPORTED;
}

/* What somebody wants to know of it. */
static int observe(hf_client *client, const hf_client_options *opt, hf_error *err)
{
    if (opt->metrics != 0) {
        client->meter = calloc(1, sizeof *client->meter);
        if (client->meter == NULL)
            return hf__fail(err, HF_NO_MEMORY, NULL);
        client->meter->seen.closest_call_ms = -1;
    }
    if (opt->on_log != NULL && hf__log_open(client, opt->on_log, opt->log_arg) < 0)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    return 0;
}

static int open_store(hf_client *client, const char *url, hf_error *err)
{
    client->host.env = client->env;
    client->host.self = &client->self;
    client->host.op_timeout_ms = client->op_timeout_ms;
    client->host.open_inner = hf__store_open;
    int r = hf__store_open(&client->host, url, &client->store, err);
    if (r == 0)
        r = check_history(client, err);
    if (r == 0 && (client->meter != NULL || client->log != NULL)) {
        r = hf__meter_store(client, client->store, &client->store, err);
        if (r < 0)
            client->store->type->close(client->store);
    }
    return r;
}

int hf__open(const char *url, const hf_client_options *given, const struct hf_env *env,
             hf_client **ret_client, hf_error *err)
{
    static const struct hf__abi_struct type = {
        "hf_client_options", offsetof(hf_client_options, modules), sizeof(hf_client_options)};
    hf_client_options known = {0};
    int r = ret_client == NULL ? hf__fail(err, HF_INVALID, "there is no place for the client")
            : given != NULL    ? hf__copy_abi_struct(&type, given, &known, err)
                               : 0;

    if (r < 0)
        return hf__wrap(err, r, "open");
    hf_client *client = new_client(env);
    if (client == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);

    r = describe_self(client, &known);
    if (r < 0)
        hf__fail(err, r, NULL);
    if (r == 0) {
        r = client->env->random(client->env->ctx, &client->seed, sizeof client->seed);
        if (r < 0)
            hf__fail(err, r, "there is no randomness to be had");
    }
    if (r == 0)
        r = read_common_options(client, url, err);
    if (r == 0)
        r = observe(client, &known, err);
    if (r == 0)
        r = open_store(client, url, err);
    if (r < 0) {
        free_client(client);
        return r;
    }
    client->capabilities = client->store->capabilities;
    client->store_name = client->store->type->name;
    *ret_client = client;
    return 0;
}

int hf_open(const char *url, const hf_client_options *opt, hf_client **ret_client, hf_error *err)
{
    int cancel_state = hf__forbid_cancel();
    int r = hf__open(url, opt, NULL, ret_client, err);

    hf__allow_cancel(cancel_state);
    return r;
}

int hf__enter_locked(hf_client *client, struct hf__visit *visit, hf_error *err)
{
    if (client == NULL)
        return hf__fail(err, HF_INVALID, "there is no client");
    if (hf__is_forked(client))
        return hf__fail(err, HF_FORKED, NULL);
    visit->cancel_state = hf__forbid_cancel();
    hf__lock_client(client);
    if (!client->closing) {
        client->users++;
        return 0;
    }
    hf__unlock_client(client);
    hf__allow_cancel(visit->cancel_state);
    return hf__fail(err, HF_CLOSED, NULL);
}

void hf__leave_unlock(hf_client *client, const struct hf__visit *visit)
{
    if (--client->users == 0 && client->closing)
        pthread_cond_broadcast(&client->changed);
    hf__unlock_client(client);
    hf__allow_cancel(visit->cancel_state);
}

int hf__enter(hf_client *client, struct hf__visit *visit, hf_error *err)
{
    int r = hf__enter_locked(client, visit, err);

    if (r == 0)
        hf__unlock_client(client);
    return r;
}

void hf__leave(hf_client *client, const struct hf__visit *visit)
{
    hf__lock_client(client);
    hf__leave_unlock(client, visit);
}

void hf__calling_begin(hf_client *client, struct hf__calling *calling)
{
    calling->thread = pthread_self();
    calling->next = client->calling;
    client->calling = calling;
}

void hf__calling_end(hf_client *client, const struct hf__calling *calling)
{
    struct hf__calling **at = &client->calling;

    while (*at != calling)
        at = &(*at)->next;
    *at = calling->next;
}

void hf__unref_client(hf_client *client)
{
    bool last = --client->refs == 0;

    hf__unlock_client(client);
    if (last)
        free_client(client);
}

int64_t hf__op_deadline(const hf_client *client)
{
    return hf__now_ns(client->env) + client->op_timeout_ms * HF__NS_PER_MS;
}

void hf__after_call(hf_client *client)
{
    bool moved = client->store->moved && atomic_exchange(&client->store->moved, false);
    bool lost = client->store->data_lost;

    if (moved)
        hf__log(client, HF_LOG_STORE_MOVED, HF_OK,
                "the store speaks to another server than before; what is held is renewed at once");
    for (hf_lock *lock = moved || lost ? client->on_duty : NULL; lock != NULL; lock = lock->next) {
        if (lock->duty != HF__DUTY_KEEP || lock->bidder.phase != HF__PHASE_HOLDING)
            continue;
        if (lost) {
            hf__bidder_lose(&lock->bidder, HF_CAUSE_STORE_LOST);
            hf__lock_holds(lock, hf__now_ns(client->env)); /* tells it */
        } else { /* what the new server does not know is lost, and is told so at once */
            hf__renewer_push(lock);
        }
    }
}

void hf__after_call_unlocked(hf_client *client)
{
    if (!client->store->moved && !client->store->data_lost)
        return;
    hf__lock_client(client);
    hf__after_call(client);
    hf__unlock_client(client);
}

uint32_t hf_capabilities(const hf_client *client)
{
    return client == NULL || client->store == NULL ? 0 : client->store->capabilities;
}
