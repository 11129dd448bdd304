/* See shim.cdef. */
#include <fcntl.h>
#include <pthread.h>

typedef struct hfpy_call {
    hf_lock *lock;
    uint64_t number;
    hf_error err;
} hfpy_call;

typedef struct {
    hf_client *native;
    hf_cancel *cancel; /* fired by close, since a wait must end before the client may be freed */
    unsigned
        users; /* atomic, as is closing: no mutex on the way in, which a forked child could find locked */
    int closing, closed;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} hfpy_client;

static int enter(hfpy_client *client);
static void leave(hfpy_client *client);

/* The call of `function` on the client, or HF_CLOSED. */
#define INSIDE(client, call)      \
    do {                          \
        int code = enter(client); \
        if (code == 0) {          \
            code = (call);        \
            leave(client);        \
        }                         \
        return code;              \
    } while (0)

static void leave(hfpy_client *client)
{
    if (__atomic_sub_fetch(&client->users, 1, __ATOMIC_SEQ_CST) == 0 &&
        __atomic_load_n(&client->closing, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&client->mutex);
        pthread_cond_broadcast(&client->changed);
        pthread_mutex_unlock(&client->mutex);
    }
}

static int enter(hfpy_client *client)
{
    __atomic_add_fetch(&client->users, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&client->closing, __ATOMIC_SEQ_CST))
        return 0;
    leave(client);
    return HF_CLOSED;
}

int hfpy_open(const char *url, const hf_client_options *opt, hfpy_client *client, hf_error *err)
{
    int code = hf_open(url, opt, &client->native, err);

    if (code == 0 && (code = hf_cancel_new(&client->cancel)) != 0)
        hf_close(client->native);
    pthread_mutex_init(&client->mutex, NULL);
    pthread_cond_init(&client->changed, NULL);
    return code;
}

void hfpy_close(hfpy_client *client)
{
    __atomic_store_n(&client->closing, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&client->mutex);
    if (client->native == NULL) { /* somebody else does it, or has */
        while (!client->closed)
            pthread_cond_wait(&client->changed, &client->mutex);
        pthread_mutex_unlock(&client->mutex);
        return;
    }
    hf_cancel_fire(client->cancel);
    while (__atomic_load_n(&client->users, __ATOMIC_SEQ_CST) > 0)
        pthread_cond_wait(&client->changed, &client->mutex);
    hf_client *native = client->native;
    client->native = NULL;
    pthread_mutex_unlock(&client->mutex);
    if (native != NULL) {
        hf_close(native);
        hf_cancel_free(client->cancel);
    }
    pthread_mutex_lock(&client->mutex);
    if (native != NULL)
        client->closed = 1;
    while (!client->closed)
        pthread_cond_wait(&client->changed, &client->mutex);
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->mutex);
}

int hfpy_acquire(hfpy_client *client, const char *name, size_t len, const hf_options *opt,
                 int waits, hfpy_call *call)
{
    hf_options waiting = *opt;

    if (waits)
        waiting.cancel = client->cancel;
    INSIDE(client, hf_acquire(client->native, name, len, &waiting, &call->lock, &call->err));
}

int hfpy_start(hfpy_client *client, const char *name, size_t len, const hf_options *opt,
               uint64_t tag, hfpy_call *call)
{
    INSIDE(client, hf_acquire_start(client->native, name, len, opt, tag, &call->err));
}

int hfpy_adopt(hfpy_client *client, const char *name, size_t len, const char *ticket,
               const hf_options *opt, hfpy_call *call)
{
    INSIDE(client, hf_adopt(client->native, name, len, ticket, opt, &call->lock, &call->err));
}

int hfpy_stop(hfpy_client *client, uint64_t tag)
{
    INSIDE(client, hf_acquire_stop(client->native, tag));
}

static int duplicate(int fd)
{
    if (fd < 0)
        return fd;
    fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? HF_SYSTEM : fd;
}

int hfpy_event_fd(hfpy_client *client)
{
    INSIDE(client, duplicate(hf_event_fd(client->native)));
}

int hfpy_event_next(hfpy_client *client, hf_event *event)
{
    event->size = sizeof *event;
    INSIDE(client, hf_event_next(client->native, 0, event));
}

static int capabilities(const hf_client *client, uint32_t *ret)
{
    *ret = hf_capabilities(client);
    return 0;
}

int hfpy_capabilities(hfpy_client *client, uint32_t *ret)
{
    INSIDE(client, capabilities(client->native, ret));
}

int hfpy_check(hfpy_client *client, const char *sequencer, hf_error *err)
{
    INSIDE(client, hf_check(client->native, sequencer, err));
}

int hfpy_inspect(hfpy_client *client, const hf_query *query, hf_view **ret_view, hf_error *err)
{
    INSIDE(client, hf_inspect(client->native, query, ret_view, err));
}

int hfpy_break(hfpy_client *client, const char *name, size_t len, const char *ticket, int now,
               hf_error *err)
{
    INSIDE(client, hf_break(client->native, name, len, ticket, now, err));
}

int hfpy_setup(hfpy_client *client, hf_error *err)
{
    INSIDE(client, hf_setup(client->native, err));
}

int hfpy_purge(hfpy_client *client, int64_t retain_ms, uint64_t *ret_count, hf_error *err)
{
    INSIDE(client, hf_purge(client->native, retain_ms, ret_count, err));
}

int hfpy_diagnose(hfpy_client *client, hf_finding_callback *found, void *arg, hf_error *err)
{
    INSIDE(client, hf_diagnose(client->native, found, arg, err));
}

int hfpy_release(hfpy_call *call)
{
    hf_lock *lock = call->lock;

    call->number = hf_lock_cause(lock);
    int code = hf_lock_release(lock, &call->err);
    if (code != HF_FORKED && code != HF_DEADLOCK)
        call->lock = NULL;
    return code;
}

int hfpy_renew(hfpy_call *call)
{
    return hf_lock_renew(call->lock, &call->err);
}

int hfpy_detach(hfpy_call *call)
{
    int code = hf_lock_detach(call->lock, &call->err);

    if (code == 0)
        call->lock = NULL;
    return code;
}
