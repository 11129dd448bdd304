/* What the files of the addon share. All state belongs to one environment (a main thread or a worker):
 * nothing here is global, so workers do not meet.
 *
 *   addon.c   what JavaScript sees: starting, stopping, questions, gates
 *   client.c  a client's life: its events on the loop, its end by close, exit or a worker's end
 *   jobs.c    the calls that may block, on threads of libuv's pool
 *
 * The classes, checks of arguments and promises are in TypeScript. It alone calls this addon, so the
 * arguments have the types that are expected here. What fails is given to it as a plain object. */
#ifndef HOLDFAST_NODE_ADDON_H
#define HOLDFAST_NODE_ADDON_H

#define NAPI_VERSION 8
#include <holdfast.h>
#include <node_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <uv.h>

/* A lock as JavaScript has it. Belongs to the list of its client until it is given back. */
struct handle {
    hf_lock *lock; /* NULL: given back */
    struct client *client;
    struct handle *next, *prev;
    uv_poll_t *watch; /* of an adopted lock, whose loss is no event: its descriptor */
    double tag;       /* to tell that loss with */
    bool wrapped;     /* JavaScript still has it */
};

/* Everything but the four fields below the mutex is used on the environment's thread only. */
struct client {
    napi_env env;
    unsigned refs; /* JavaScript's, one for each poll, handle and job */
    uv_poll_t poll;
    unsigned polls; /* `poll` and those of the handles, until the loop has closed them */
    bool polling, ended;
    size_t pending; /* started, without an event yet: they keep the loop alive */
    napi_async_cleanup_hook_handle hook;
    struct handle *handles;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    hf_client *hf;    /* NULL: closed */
    unsigned running; /* jobs that use it now */
    bool closing;     /* no job may begin */
};

struct environment {
    napi_ref on_event;
    napi_async_context context;
};

/* client.c */
napi_value client_wrap(napi_env env, hf_client *hf); /* NULL, and closes it: no memory */
void client_ref(struct client *client);
void client_unref(struct client *client);
bool client_enter(struct client *client); /* false: it is closed, or being closed */
void client_leave(struct client *client);
void client_stop(struct client *client); /* no event and no new call from here */
void client_end(struct client *client);  /* closes it on this thread, or waits until it is closed */
void client_freed(struct client *client); /* after client_end(), on the environment's thread */
void client_pending(struct client *client, int by);
napi_value handle_wrap(struct client *client, hf_lock *lock);
void handle_watch(struct client *client, double tag); /* the newest handle */
void handle_forget(struct handle *handle);            /* the lock is given back */

/* addon.c */
napi_value failure_object(napi_env env, const hf_error *err);
napi_value text_value(napi_env env, const char *text); /* NULL becomes undefined */
char *text_arg(napi_env env, napi_value value);        /* NULL if it is no string; free() it */
void *pointer_arg(napi_env env, napi_value value);     /* NULL if it is no external */
void options_arg(napi_env env, napi_value value, hf_options *ret_options);

/* jobs.c: job(kind, client, handle, name, text, numbers) makes a promise */
napi_value job_start(napi_env env, napi_callback_info info);

#endif
