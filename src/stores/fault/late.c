/* See late.h. There are few such calls, so a thread each is the plainest way; all are joined at the
 * end, so that nothing runs in the inner store when it is closed. */
#include "stores/fault/late.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

#include "base/banned.h"

struct late_call {
    struct late_call *next;
    struct late *late;
    pthread_t thread;
    int64_t when_ns;
    struct hf__operation op;
    struct hf__bid bid;
    struct hf__who who;
    char *name, *host, *user, *program, *note;
};

static void free_call(struct late_call *call)
{
    free(call->name);
    free(call->host);
    free(call->user);
    free(call->program);
    free(call->note);
    free(call);
}

static char *copy_text(const char *text)
{
    return strdup(text != NULL ? text : "");
}

static bool copy_bid(struct late_call *call, const struct hf__bid *bid)
{
    static const struct hf__who nobody = {"", "", "", "", 0};
    const struct hf__who *who = bid->who != NULL ? bid->who : &nobody;

    call->name = malloc(bid->name_len + 1);
    call->host = copy_text(who->host);
    call->user = copy_text(who->user);
    call->program = copy_text(who->program);
    call->note = copy_text(who->note);
    if (!call->name || !call->host || !call->user || !call->program || !call->note)
        return false;
    memcpy(call->name, bid->name, bid->name_len);
    call->name[bid->name_len] = '\0';
    call->who = (struct hf__who){call->host, call->user, call->program, call->note, who->pid};
    call->bid = *bid;
    call->bid.name = call->name;
    call->bid.who = &call->who;
    return true;
}

static void make_call(struct late_call *call)
{
    struct hf__store *inner = call->late->inner;
    int64_t now_ns = hf__now_ns(inner->host->env);
    int64_t deadline_ns = now_ns + inner->host->op_timeout_ms * HF__NS_PER_MS;
    struct hf__answer answer = {.sent_ns = now_ns};

    inner->type->operate(inner, &call->op, deadline_ns, &answer, NULL);
}

static void *run_call(void *arg)
{
    struct late_call *call = arg;
    struct late *late = call->late;
    const struct hf_env *env = late->inner->host->env;

    pthread_mutex_lock(&late->mutex);
    while (!late->closing && hf__cond_wait(&late->closing_now, &late->mutex, env, call->when_ns))
        continue;
    pthread_mutex_unlock(&late->mutex);
    make_call(call);
    return NULL;
}

int late_add(struct late *late, const struct hf__operation *op, int64_t ms)
{
    struct late_call *call = calloc(1, sizeof *call);

    if (call == NULL)
        return HF_NO_MEMORY;
    call->late = late;
    call->op = *op;
    call->op.bid = &call->bid;
    call->when_ns = hf__moment_after(hf__now_ns(late->inner->host->env), ms);
    if (!copy_bid(call, op->bid)) {
        free_call(call);
        return HF_NO_MEMORY;
    }
    pthread_mutex_lock(&late->mutex);
    int failed = hf__thread_start(&call->thread, "hf-late", 0, run_call, call);
    if (failed == 0) {
        call->next = late->calls;
        late->calls = call;
    }
    pthread_mutex_unlock(&late->mutex);
    if (failed == 0)
        return 0;
    free_call(call);
    return HF_SYSTEM;
}

void late_init(struct late *late, struct hf__store *inner)
{
    late->inner = inner;
    late->closing = false;
    late->calls = NULL;
    pthread_mutex_init(&late->mutex, NULL);
    hf__cond_init(&late->closing_now);
}

void late_clear(struct late *late)
{
    pthread_mutex_lock(&late->mutex);
    late->closing = true;
    pthread_cond_broadcast(&late->closing_now);
    pthread_mutex_unlock(&late->mutex);
    while (late->calls != NULL) {
        struct late_call *call = late->calls;
        late->calls = call->next;
        pthread_join(call->thread, NULL);
        free_call(call);
    }
    pthread_cond_destroy(&late->closing_now);
    pthread_mutex_destroy(&late->mutex);
}
