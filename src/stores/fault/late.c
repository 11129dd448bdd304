/* See late.h. There are few such requests, so a thread each is the plainest way; all are joined at
 * the end, so that nothing runs in the inner store when it is closed.
 *
 * A late request is what retired tickets are for: its caller has given up and withdrawn, and only
 * then it arrives. The store must not grant it any more. */
#include "stores/fault/late.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

#include "base/banned.h"

struct hf__fault_late_request {
    struct hf__fault_late_request *next;
    struct hf__fault_late *late;
    pthread_t thread;
    int64_t when_ns;
    struct hf__operation op;
    struct hf__bid bid;
    struct hf__who who;
    struct hf__value value;
    char *name, *host, *user, *program, *note;
};

static void free_request(struct hf__fault_late_request *request)
{
    free(request->name);
    free(request->host);
    free(request->user);
    free(request->program);
    free(request->note);
    free(request);
}

static char *copy_text(const char *text)
{
    return strdup(text != NULL ? text : "");
}

/* The caller's bid is gone when the request is delivered: the caller was told HF_UNKNOWN at
 * once. */
static bool copy_bid(struct hf__fault_late_request *request, const struct hf__bid *bid)
{
    static const struct hf__who nobody = {"", "", "", "", 0};
    const struct hf__who *who = bid->who != NULL ? bid->who : &nobody;

    request->name = malloc(bid->name_len + 1);
    request->host = copy_text(who->host);
    request->user = copy_text(who->user);
    request->program = copy_text(who->program);
    request->note = copy_text(who->note);
    if (!request->name || !request->host || !request->user || !request->program || !request->note)
        return false;
    memcpy(request->name, bid->name, bid->name_len);
    request->name[bid->name_len] = '\0';
    request->who =
        (struct hf__who){request->host, request->user, request->program, request->note, who->pid};
    request->bid = *bid;
    request->bid.name = request->name;
    request->bid.who = &request->who;
    return true;
}

/* Nobody hears the answer. A close delivers what is still to come at once: what is on its way in a
 * network arrives whether its sender lives or not. */
static void *deliver(void *arg)
{
    struct hf__fault_late_request *request = arg;
    struct hf__fault_late *late = request->late;
    struct hf__store *inner = late->inner;
    const struct hf_env *env = inner->host->env;

    pthread_mutex_lock(&late->mutex);
    while (!late->closing && hf__cond_wait(&late->closing_now, &late->mutex, env, request->when_ns))
        continue;
    pthread_mutex_unlock(&late->mutex);
    int64_t now_ns = hf__now_ns(env);
    struct hf__answer answer = {.sent_ns = now_ns};
    inner->type->operate(inner, &request->op, now_ns + inner->host->op_timeout_ms * HF__NS_PER_MS,
                         &answer, NULL);
    return NULL;
}

int hf__fault_late_add(struct hf__fault_late *late, const struct hf__operation *op, int64_t ms)
{
    struct hf__fault_late_request *request = calloc(1, sizeof *request);

    if (request == NULL)
        return HF_NO_MEMORY;
    request->late = late;
    request->op = *op;
    request->op.bid = &request->bid;
    if (op->value != NULL) {
        request->value = *op->value;
        request->op.value = &request->value;
    }
    request->when_ns = hf__moment_after(hf__now_ns(late->inner->host->env), ms);
    if (!copy_bid(request, op->bid)) {
        free_request(request);
        return HF_NO_MEMORY;
    }
    pthread_mutex_lock(&late->mutex);
    int failed = hf__thread_start(&request->thread, "hf-late", 0, deliver, request);
    if (failed == 0) {
        request->next = late->requests;
        late->requests = request;
    }
    pthread_mutex_unlock(&late->mutex);
    if (failed == 0)
        return 0;
    free_request(request);
    return HF_SYSTEM;
}

void hf__fault_late_init(struct hf__fault_late *late, struct hf__store *inner)
{
    late->inner = inner;
    late->closing = false;
    late->requests = NULL;
    pthread_mutex_init(&late->mutex, NULL);
    hf__cond_init(&late->closing_now);
}

void hf__fault_late_clear(struct hf__fault_late *late)
{
    pthread_mutex_lock(&late->mutex);
    late->closing = true;
    pthread_cond_broadcast(&late->closing_now);
    pthread_mutex_unlock(&late->mutex);
    while (late->requests != NULL) {
        struct hf__fault_late_request *request = late->requests;
        late->requests = request->next;
        pthread_join(request->thread, NULL);
        free_request(request);
    }
    pthread_cond_destroy(&late->closing_now);
    pthread_mutex_destroy(&late->mutex);
}
