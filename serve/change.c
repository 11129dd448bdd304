/* What changes a lock that is there, by its ticket: renew, release, break; and the check of a sequencer. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/entry.h"
#include "fields.h"
#include "grant.h"
#include "routes.h"
#include "server.h"

#include "base/banned.h"

static void answer(struct request *request, int code, const hf_error *err, const char *key)
{
    struct reply_writer writer;

    if (code != HF_OK) {
        reply_error(&request->reply, err);
        return;
    }
    if (!reply_begin(&request->reply, 200, &writer))
        return;
    cli_json_open(&writer.json, NULL, '{');
    cli_json_bool(&writer.json, key, true);
    cli_json_close(&writer.json, '}');
    reply_end(&writer);
}

/* Reads the body; what is wrong with it is the reply. */
static bool read_body(struct request *request, const struct field *fields)
{
    hf_error err = {0};

    if (fields_read(request->body, request->body_len, fields, &err) == HF_OK)
        return true;
    reply_error(&request->reply, &err);
    return false;
}

/* What renew and release are about: a lease that was taken here, or at another server of this kind. A ticket is no
 * secret, everybody who may read sees it; so a lock that a program holds by itself is not to be had by its ticket. */
struct lease {
    char *ticket, *generation;
    hf_lock *lock;
    int64_t ttl_ms;
};

static int check_entry(const hf_entry *e, struct lease *lease, hf_error *err)
{
    char generation[24] = "";

    if (e == NULL || e->place != HF_PLACE_INSIDE)
        return hf__fail(err, HF_STALE, NULL);
    if (strcmp(e->program, SERVER_PROGRAM) != 0)
        return hf__fail(err, HF_DENIED,
                        "this lock was not taken over HTTP; if its holder is gone, "
                        "break it");
    if (e->generation != 0)
        snprintf(generation, sizeof generation, "%ju", (uintmax_t)e->generation);
    if (lease->generation != NULL && strcmp(lease->generation, generation) != 0)
        return hf__fail(err, HF_STALE, "this ticket has another generation");
    lease->ttl_ms = e->ttl_ms;
    return 0;
}

static int adopt(struct request *request, struct lease *lease, hf_error *err)
{
    hf_client *client = request->store->client;
    hf_query query = {
        .size = sizeof query, .name = request->name.at, .name_len = request->name.len};
    hf_options o = {.size = sizeof o, .by_hand = 1, .owner = (uintptr_t)request};
    hf_view *view;
    int code = hf_inspect(client, &query, &view, err);

    if (code != HF_OK)
        return code;
    code = check_entry(cli_find_ticket(view, lease->ticket), lease, err);
    hf_view_free(view);
    if (code == HF_OK)
        code = hf_adopt(client, request->name.at, request->name.len, lease->ticket, &o,
                        &lease->lock, err);
    return code;
}

/* Reads the body and takes the lock over, which restarts its lease. False: the reply says why not. */
static bool take_lease(struct request *request, struct lease *lease)
{
    const struct field fields[] = {{"ticket", FIELD_TEXT, &lease->ticket, .required = true},
                                   {.name = "generation", .value = &lease->generation},
                                   {0}};
    hf_error err = {0};

    *lease = (struct lease){0};
    if (!read_body(request, fields))
        return false;
    if (adopt(request, lease, &err) == HF_OK)
        return true;
    reply_error(&request->reply, &err);
    return false;
}

static void free_lease(struct lease *lease)
{
    free(lease->ticket);
    free(lease->generation);
}

static void renew(struct request *request)
{
    struct lease lease;
    hf_error err = {0};

    if (take_lease(request, &lease)) {
        grant_reply(&request->reply, lease.lock, lease.ttl_ms);
        if (hf_lock_detach(lease.lock, &err) != HF_OK) {
            reply_error(&request->reply, &err);
            hf_lock_release(lease.lock, NULL); /* it is lost: only the handle is left to be freed */
        }
    }
    free_lease(&lease);
}

void change_renew(struct request *request)
{
    request_work(request, renew);
}

static void release(struct request *request)
{
    struct lease lease;
    hf_error err = {0};

    if (take_lease(request, &lease))
        answer(request, hf_lock_release(lease.lock, &err), &err, "released");
    free_lease(&lease);
}

void change_release(struct request *request)
{
    request_work(request, release);
}

static void break_lock(struct request *request)
{
    char *ticket = NULL;
    bool now = false;
    const struct field fields[] = {{"ticket", FIELD_TEXT, &ticket, .required = true},
                                   {.name = "now", .kind = FIELD_FLAG, .value = &now},
                                   {0}};
    hf_error err = {0};

    if (read_body(request, fields)) {
        int code = hf_break(request->store->client, request->name.at, request->name.len, ticket,
                            now, &err);
        answer(request, code, &err, "broken");
    }
    free(ticket);
}

void change_break(struct request *request)
{
    if (request->server->allow_break)
        request_work(request, break_lock);
    else
        reply_refuse(&request->reply, 403, HF_DENIED,
                     "this server breaks no locks; start it with --allow-break");
}

static void check(struct request *request)
{
    char *sequencer = NULL;
    const struct field fields[] = {{"sequencer", FIELD_TEXT, &sequencer, .required = true}, {0}};
    hf_error err = {0};

    if (read_body(request, fields))
        answer(request, hf_check(request->store->client, sequencer, &err), &err, "current");
    free(sequencer);
}

void change_check(struct request *request)
{
    request_work(request, check);
}
