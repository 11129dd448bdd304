/* A client's life in an environment. Its descriptor of events is polled by the environment's loop; no
 * thread of the library ever enters JavaScript.
 *
 *   client_wrap -- polling -- client_stop -- client_end -- client_freed
 *
 * close() does the last three (client_end on a thread of the pool), exit does them at once, and the end
 * of a worker does so by the hook. The hook is also why the memory lives until the poll is closed. */
#include "addon.h"

#include <stdlib.h>

#define EVENTS_AT_ONCE 256 /* then others of the loop have their turn */

void client_ref(struct client *client)
{
    client->refs++;
}

void client_unref(struct client *client)
{
    if (--client->refs > 0)
        return;
    pthread_cond_destroy(&client->changed);
    pthread_mutex_destroy(&client->mutex);
    free(client);
}

bool client_enter(struct client *client)
{
    pthread_mutex_lock(&client->mutex);
    bool open = !client->closing;
    client->running += open;
    pthread_mutex_unlock(&client->mutex);
    return open;
}

void client_leave(struct client *client)
{
    pthread_mutex_lock(&client->mutex);
    client->running--;
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->mutex);
}

void client_pending(struct client *client, int by)
{
    client->pending += by;
    if (!client->polling)
        return;
    if (client->pending > 0)
        uv_ref((uv_handle_t *)&client->poll);
    else
        uv_unref((uv_handle_t *)&client->poll);
}

/* Tells JavaScript of one event: onEvent(kind, tag, handle, failure, cause). */
static void tell(struct client *client, const hf_event *event, napi_value handle)
{
    napi_env env = client->env;
    struct environment *environment;
    napi_value global, on_event, args[5];
    napi_get_undefined(env, &args[3]);
    args[2] = handle == NULL ? args[3] : handle;
    if (event->err.code != HF_OK)
        args[3] = failure_object(env, &event->err);
    napi_get_instance_data(env, (void **)&environment);
    napi_get_global(env, &global);
    napi_create_int32(env, event->kind, &args[0]);
    napi_create_double(env, (double)event->tag, &args[1]);
    napi_create_int32(env, event->cause, &args[4]);
    if (napi_get_reference_value(env, environment->on_event, &on_event) != napi_ok)
        return;
    if (napi_make_callback(env, environment->context, global, on_event, 5, args, NULL) ==
        napi_pending_exception) {
        napi_value thrown;
        if (napi_get_and_clear_last_exception(env, &thrown) == napi_ok)
            napi_fatal_exception(env, thrown);
    }
}

static void deliver(struct client *client, const hf_event *event)
{
    napi_handle_scope scope;
    if (napi_open_handle_scope(client->env, &scope) != napi_ok)
        return;
    if (event->kind == HF_EVENT_ACQUIRED || event->kind == HF_EVENT_FAILED ||
        event->kind == HF_EVENT_RELEASED)
        client_pending(client, -1);
    tell(client, event, event->kind == HF_EVENT_ACQUIRED ? handle_wrap(client, event->lock) : NULL);
    napi_close_handle_scope(client->env, scope);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct client *client = poll->data;
    (void)status;
    (void)events;
    client_ref(client); /* a callback may close it */
    for (int i = 0; i < EVENTS_AT_ONCE && client->polling; i++) {
        hf_event event = {.size = sizeof event};
        if (hf_event_next(client->hf, 0, &event) != HF_OK)
            break;
        deliver(client, &event);
    }
    client_unref(client);
}

/* The hook must stay until nothing of the client needs the loop any more. */
static void unhook(struct client *client)
{
    if (client->hook == NULL || !client->ended || client->polls > 0)
        return;
    napi_remove_async_cleanup_hook(client->hook);
    client->hook = NULL;
}

static void on_poll_closed(uv_handle_t *poll)
{
    struct client *client = poll->data;
    client->polls--;
    if ((uv_poll_t *)poll != &client->poll)
        free(poll);
    unhook(client);
    client_unref(client);
}

void client_stop(struct client *client)
{
    pthread_mutex_lock(&client->mutex);
    client->closing = true;
    pthread_mutex_unlock(&client->mutex);
    if (!client->polling)
        return;
    client->polling = false;
    uv_close((uv_handle_t *)&client->poll, on_poll_closed); /* takes it from the loop at once */
}

/* Two threads may come here: the pool's for close(), and the environment's at its end. */
void client_end(struct client *client)
{
    pthread_mutex_lock(&client->mutex);
    while (client->running > 0)
        pthread_cond_wait(&client->changed, &client->mutex);
    if (client->hf != NULL) {
        client->running++;
        pthread_mutex_unlock(&client->mutex);
        hf_close(client->hf);
        pthread_mutex_lock(&client->mutex);
        client->hf = NULL;
        client->running--;
        pthread_cond_broadcast(&client->changed);
    }
    pthread_mutex_unlock(&client->mutex);
}

void client_freed(struct client *client)
{
    while (client->handles != NULL) {
        hf_lock *lock = client->handles->lock;
        handle_forget(client->handles);
        hf_lock_release(lock, NULL); /* the client is closed: it only frees the memory */
    }
    client->ended = true;
    unhook(client);
}

static void on_environment_end(napi_async_cleanup_hook_handle hook, void *arg)
{
    struct client *client = arg;
    (void)hook;
    client_ref(client);
    client_stop(client);
    client_end(client);
    client_freed(client);
    client_unref(client);
}

static void on_client_collected(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    client_unref(data);
}

/* A descriptor on the loop that does not keep the loop alive. */
static bool poll_fd(struct client *client, uv_poll_t *poll, int fd)
{
    uv_loop_t *loop;
    if (fd < 0 || napi_get_uv_event_loop(client->env, &loop) != napi_ok ||
        uv_poll_init(loop, poll, fd) != 0)
        return false;
    poll->data = client;
    client->polls++;
    client_ref(client);
    uv_unref((uv_handle_t *)poll);
    return true;
}

static bool poll_events(struct client *client)
{
    client->polling = poll_fd(client, &client->poll, hf_event_fd(client->hf));
    return client->polling && uv_poll_start(&client->poll, UV_READABLE, on_readable) == 0;
}

napi_value client_wrap(napi_env env, hf_client *hf)
{
    napi_value external;
    struct client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        hf_close(hf);
        return NULL;
    }
    *client = (struct client){.env = env, .refs = 1, .hf = hf};
    pthread_mutex_init(&client->mutex, NULL);
    pthread_cond_init(&client->changed, NULL);
    if (napi_add_async_cleanup_hook(env, on_environment_end, client, &client->hook) == napi_ok &&
        poll_events(client) &&
        napi_create_external(env, client, on_client_collected, NULL, &external) == napi_ok)
        return external;
    client_stop(client);
    client_end(client);
    client_freed(client);
    client_unref(client);
    return NULL;
}

static void on_handle_collected(napi_env env, void *data, void *hint)
{
    struct handle *handle = data;
    (void)env;
    (void)hint;
    handle->wrapped = false;
    if (handle->lock == NULL)
        free(handle);
}

napi_value handle_wrap(struct client *client, hf_lock *lock)
{
    napi_value external = NULL;
    struct handle *handle = malloc(sizeof *handle);
    if (handle == NULL) {
        hf_release_start(lock, 0, NULL);
        return NULL;
    }
    *handle = (struct handle){.lock = lock, .client = client, .next = client->handles};
    if (client->handles != NULL)
        client->handles->prev = handle;
    client->handles = handle;
    client_ref(client);
    handle->wrapped =
        napi_create_external(client->env, handle, on_handle_collected, NULL, &external) == napi_ok;
    return external; /* if it could not be made, the environment ends, and the client with it */
}

static void on_lost(uv_poll_t *watch, int status, int events)
{
    struct client *client = watch->data;
    struct handle *handle = client->handles;
    (void)status;
    (void)events;
    uv_poll_stop(watch);
    while (handle != NULL && handle->watch != watch)
        handle = handle->next;
    if (handle == NULL)
        return;
    hf_event event = {.kind = HF_EVENT_LOST, .tag = (uint64_t)handle->tag};
    event.cause = hf_lock_cause(handle->lock);
    deliver(client, &event);
}

void handle_watch(struct client *client, double tag)
{
    struct handle *handle = client->handles;
    uv_poll_t *watch = malloc(sizeof *watch);
    if (watch == NULL || !poll_fd(client, watch, hf_lock_fd(handle->lock))) {
        free(watch);
        return;
    }
    handle->watch = watch;
    handle->tag = tag;
    uv_poll_start(watch, UV_READABLE, on_lost);
}

void handle_forget(struct handle *handle)
{
    struct client *client = handle->client;
    if (handle->watch != NULL)
        uv_close((uv_handle_t *)handle->watch, on_poll_closed);
    handle->watch = NULL;
    if (handle->prev != NULL)
        handle->prev->next = handle->next;
    else
        client->handles = handle->next;
    if (handle->next != NULL)
        handle->next->prev = handle->prev;
    handle->lock = NULL;
    handle->client = NULL;
    if (!handle->wrapped)
        free(handle);
    client_unref(client);
}
