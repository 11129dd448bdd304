/* Opening and closing, and the door through which every call on a client goes. */
#include "core/client.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/registry.h"
#include "core/sized.h"
#include "util/banned.h"

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

    gethostname(host, sizeof host - 1);
    if (asprintf(&client->self_text, "%.127s%c%.63s%c%.127s", host, '\0', user, '\0', program) <
        0) {
        client->self_text = NULL;
        return HF_NO_MEMORY;
    }
    client->self.host = client->self_text;
    client->self.user = client->self.host + strlen(client->self.host) + 1;
    client->self.program = client->self.user + strlen(client->self.user) + 1;
    client->self.note = "";
    client->self.pid = client->pid;
    return 0;
}

static void free_client(hf_client *client)
{
    hf__heap_clear(&client->timers);
    hf__table_clear(&client->waiting);
    hf__table_clear(&client->owned);
    pthread_cond_destroy(&client->changed);
    pthread_cond_destroy(&client->has_job);
    pthread_cond_destroy(&client->has_call);
    pthread_mutex_destroy(&client->mutex);
    free(client->self_text);
    hf__own_clear(client);
    free(client);
}

static hf_client *new_client(const struct hf_env *env)
{
    hf_client *client = calloc(1, sizeof *client);

    if (client == NULL)
        return NULL;
    client->env = env != NULL ? env : &hf__system_env;
    hf__own_init(client);
    client->refs = 1;
    client->epoll_fd = client->timer_fd = client->kick_fd = -1;
    client->wake_fd = client->nudge_fd = -1;
    client->armed_ns = client->pressing_ns = INT64_MAX;
    pthread_mutex_init(&client->mutex, NULL);
    pthread_cond_init(&client->changed, NULL);
    pthread_cond_init(&client->has_job, NULL);
    pthread_cond_init(&client->has_call, NULL);
    return client;
}

/* What every store's URL may say. The registry has checked, or will refuse, the values. */
static int read_common_options(hf_client *client, const char *text, hf_error *err)
{
    struct hf__url url = {0};
    int r = text != NULL ? hf__url_parse(text, &url, err) : 0;

    if (r < 0)
        return r;
    client->op_timeout_ms = hf__url_number(&url, hf__common_options, "op_timeout");
    client->retain_ms = hf__url_number(&url, hf__common_options, "retain");
    client->retire_ms = 10 * client->op_timeout_ms < 60000 ? 60000 : 10 * client->op_timeout_ms;
    hf__url_clear(&url);
    return 0;
}

int hf__open(const char *url, const hf_client_options *given, const struct hf_env *env,
             hf_client **ret_client, hf_error *err)
{
    static const struct hf__sized sized = {"hf_client_options", sizeof(hf_client_options),
                                           sizeof(hf_client_options)};
    hf_client_options known = {0};
    int r = ret_client == NULL ? hf__fail(err, HF_INVALID, "there is no place for the client")
            : given != NULL    ? hf__copy_sized(&sized, given, &known, err)
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
    if (r == 0) {
        client->host = (struct hf__host){.env = client->env,
                                         .self = &client->self,
                                         .op_timeout_ms = client->op_timeout_ms,
                                         .open_inner = hf__store_open};
        r = hf__store_open(&client->host, url, &client->store, err);
    }
    if (r < 0) {
        free_client(client);
        return r;
    }
    client->capabilities = client->store->capabilities;
    *ret_client = client;
    return 0;
}

int hf_open(const char *url, const hf_client_options *opt, hf_client **ret_client, hf_error *err)
{
    return hf__open(url, opt, NULL, ret_client, err);
}

int hf__enter(hf_client *client, struct hf__visit *visit, hf_error *err)
{
    if (client == NULL)
        return hf__fail(err, HF_INVALID, "there is no client");
    if (hf__is_forked(client))
        return hf__fail(err, HF_FORKED, NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &visit->cancel_state);
    hf__lock_client(client);
    bool closing = client->closing;
    if (!closing)
        client->users++;
    hf__unlock_client(client);
    if (closing)
        pthread_setcancelstate(visit->cancel_state, NULL);
    return closing ? hf__fail(err, HF_CLOSED, NULL) : 0;
}

void hf__leave(hf_client *client, const struct hf__visit *visit)
{
    hf__lock_client(client);
    if (--client->users == 0 && client->closing)
        pthread_cond_broadcast(&client->changed);
    hf__unlock_client(client);
    pthread_setcancelstate(visit->cancel_state, NULL);
}

void hf__calling_begin(hf_client *client, struct hf__calling *calling)
{
    calling->thread = pthread_self();
    hf__lock_client(client);
    calling->next = client->calling;
    client->calling = calling;
    hf__unlock_client(client);
}

void hf__calling_end(hf_client *client, const struct hf__calling *calling)
{
    struct hf__calling **at = &client->calling;

    hf__lock_client(client);
    while (*at != calling)
        at = &(*at)->next;
    *at = calling->next;
    hf__unlock_client(client);
}

/* Mutex held. */
static bool in_callback(const hf_client *client)
{
    const struct hf__calling *calling = client->calling;

    while (calling != NULL && !pthread_equal(calling->thread, pthread_self()))
        calling = calling->next;
    return calling != NULL || hf__herald_is_me(client);
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

int hf__thread_start(pthread_t *ret_thread, size_t stack, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    pthread_attr_t attr;

    if (pthread_attr_init(&attr) != 0)
        return HF_NO_MEMORY;
    if (stack != 0)
        pthread_attr_setstacksize(&attr, stack);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(ret_thread, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return failed ? HF_SYSTEM : 0;
}

/* What the store's new server does not know is lost, and is told so at once. */
static void verify_all(hf_client *client)
{
    for (hf_lock *lock = client->locks; lock != NULL; lock = lock->next) {
        if (lock->duty == HF__KEEP && lock->bidder.phase == HF__HOLDING)
            hf__hand_push(lock);
    }
}

void hf__after_call(hf_client *client)
{
    if (client->store->moved && atomic_exchange(&client->store->moved, false))
        verify_all(client);
    if (!client->store->data_lost)
        return;
    for (hf_lock *lock = client->locks; lock != NULL; lock = lock->next) {
        if (lock->duty == HF__KEEP && lock->bidder.phase == HF__HOLDING) {
            hf__bidder_lose(&lock->bidder, HF_CAUSE_STORE_LOST);
            hf__lock_tell_lost(lock);
        }
    }
}

/* Gives back what is still held, so that others need not wait for the leases to end. One store that
 * does not answer is enough to stop trying: the leases end by themselves. */
static void release_all(hf_client *client)
{
    bool store_answers = true;

    for (hf_lock *lock = client->locks; lock != NULL; lock = lock->next) {
        bool held = hf__bidder_holds(&lock->bidder, hf__now_ns(client->env));
        bool undo = lock->duty == HF__UNDO;
        hf__bidder_lose(&lock->bidder, HF_CAUSE_CLOSED);
        if (!lock->lost_told) { /* without a callback: whoever closes the client knows */
            lock->lost_told = true;
            hf__lock_show_lost(lock);
        }
        if (!store_answers || !(held || undo))
            continue;
        struct hf__answer answer = {0};
        hf__unlock_client(client);
        int r = client->store->type->release(client->store, &lock->bid,
                                             lock->bidder.unanswered ? client->retire_ms : 0,
                                             hf__op_deadline(client), &answer, NULL);
        hf__lock_client(client);
        store_answers = r == 0;
    }
}

/* The locks themselves stay until their handles are given back; those without a handle go now. */
static void forget_undone(hf_client *client)
{
    hf_lock *next;

    for (hf_lock *lock = client->locks; lock != NULL; lock = next) {
        next = lock->next;
        if (lock->duty == HF__UNDO)
            hf__lock_unref(lock);
    }
}

void hf_close(hf_client *client)
{
    if (client == NULL || hf__is_forked(client))
        return; /* in a forked child everything belongs to the parent */

    hf__lock_client(client);
    if (in_callback(client)) { /* it would wait for itself */
        hf__unlock_client(client);
        return;
    }
    client->closing = true;
    for (hf_lock *lock = client->locks; lock != NULL; lock = lock->next) {
        if (lock->waiter != NULL)
            hf__wait_tell(lock, HF__NEWS_CLOSED);
    }
    while (client->users > 0)
        pthread_cond_wait(&client->changed, &client->mutex);
    hf__unlock_client(client);

    hf__hand_stop(client);
    hf__lock_client(client);
    release_all(client);
    hf__unlock_client(client);
    hf__keeper_stop(client);
    hf__ear_close(client);
    hf__herald_stop(client);

    hf__lock_client(client);
    forget_undone(client);
    client->store->type->close(client->store);
    client->store = NULL;
    client->closed = true;
    pthread_cond_broadcast(&client->changed);
    hf__unref_client(client);
}

uint32_t hf_capabilities(const hf_client *client)
{
    return client == NULL || client->store == NULL ? 0 : client->store->capabilities;
}
