/* See request.h. */
#include "request.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

#include "base/banned.h"

struct request *request_new(struct server *server, const char *uri)
{
    struct request *request = calloc(1, sizeof *request);

    if (request == NULL)
        return NULL;
    request->server = server;
    target_parse(uri, &request->target);
    request->next = server->requests;
    if (request->next != NULL)
        request->next->prev = request;
    server->requests = request;
    return request;
}

void request_free(struct request *request)
{
    if (request->prev != NULL)
        request->prev->next = request->next;
    else
        request->server->requests = request->next;
    if (request->next != NULL)
        request->next->prev = request->prev;
    target_clear(&request->target);
    reply_clear(&request->reply);
    if (request->response != NULL) /* the client went away before it could be queued */
        MHD_destroy_response(request->response);
    free(request->body);
    free(request);
}

void request_suspend(struct request *request)
{
    request->state = REQUEST_WORKING;
    MHD_suspend_connection(request->connection);
}

void request_resume(struct request *request)
{
    if (request->state != REQUEST_WORKING)
        return;
    request->state = REQUEST_READY;
    MHD_resume_connection(request->connection);
}

static void do_work(struct job *job)
{
    struct request *request = (struct request *)((char *)job - offsetof(struct request, job));

    request->work(request);
}

static void work_done(struct posted *posted)
{
    struct request *request =
        (struct request *)((char *)posted - offsetof(struct request, job.posted));

    request_resume(request);
}

void request_work(struct request *request, void (*work)(struct request *request))
{
    request->work = work;
    request->job = (struct job){.work = do_work, .posted.run = work_done};
    request_suspend(request); /* before it can be done */
    if (!workers_give(&request->store->workers, &request->job)) {
        reply_refuse(&request->reply, 503, HF_FULL, "too many requests wait for this store");
        request_resume(request);
    }
}

const char *request_header(const struct request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

bool request_take_body(struct request *request, const char *data, size_t size)
{
    if (size > REQUEST_BODY_MAX - request->body_len)
        return false;
    char *body = realloc(request->body, request->body_len + size + 1);
    if (body == NULL)
        return false;
    memcpy(body + request->body_len, data, size);
    request->body = body;
    request->body_len += size;
    body[request->body_len] = '\0';
    return true;
}

/* What a browser must know so that nothing of a lock's name or of another page can do harm. */
static void add_headers(const struct request *request, struct MHD_Response *response)
{
    static const struct {
        const char *name, *value;
    } headers[] = {
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
         "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
         "require-trusted-types-for 'script'"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Referrer-Policy", "no-referrer"},
        {"Cache-Control", "no-store"},
    };

    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        MHD_add_response_header(response, headers[i].name, headers[i].value);
    if (request->reply.status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (request->allow != NULL)
        MHD_add_response_header(response, "Allow", request->allow);
    if (request->reply.type != NULL)
        MHD_add_response_header(response, "Content-Type", request->reply.type);
}

enum MHD_Result request_answer(struct request *request)
{
    struct reply *reply = &request->reply;
    struct MHD_Response *response = request->response;

    request->state = REQUEST_ANSWERED;
    if (response == NULL && reply->text != NULL)
        response = MHD_create_response_from_buffer(reply->len, reply->text, MHD_RESPMEM_MUST_FREE);
    else if (response == NULL)
        response = MHD_create_response_from_buffer(reply->len, (void *)(uintptr_t)reply->fixed,
                                                   MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return MHD_NO;
    reply->text = NULL; /* the response has it */
    add_headers(request, response);
    server_count(request->server, request->route, reply->status);
    enum MHD_Result r = MHD_queue_response(request->connection, reply->status, response);
    MHD_destroy_response(response);
    request->response = NULL;
    return r;
}
