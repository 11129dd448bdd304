/* Requests with a deadline.
 *
 * The library's synchronous calls cannot be given up, so everything is asynchronous: a call is
 * owned by two, the thread that waits and the completion, and whoever lets go last frees it.
 * Several calls can be under way at once; ZooKeeper answers those of one session in their order. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stores/zookeeper/zk.h"

#include "base/banned.h"

struct hf__zk_call *hf__zk_call_new(void)
{
    struct hf__zk_call *call = calloc(1, sizeof *call);

    if (call == NULL)
        return NULL;
    pthread_mutex_init(&call->mutex, NULL);
    pthread_cond_init(&call->answered, NULL);
    call->refs = 1;
    return call;
}

void hf__zk_call_ref(struct hf__zk_call *call)
{
    pthread_mutex_lock(&call->mutex);
    call->refs++;
    pthread_mutex_unlock(&call->mutex);
}

static void clear_result(struct hf__zk_call *call)
{
    for (int i = 0; i < call->name_count; i++)
        free(call->names[i]);
    free(call->names);
    free(call->text);
    free(call->results);
    call->names = NULL;
    call->text = NULL;
    call->results = NULL;
    call->name_count = call->text_len = call->result_count = 0;
}

void hf__zk_call_again(struct hf__zk_call *call)
{
    pthread_mutex_lock(&call->mutex);
    clear_result(call);
    call->done = false;
    pthread_mutex_unlock(&call->mutex);
}

void hf__zk_call_free(struct hf__zk_call *call)
{
    if (call == NULL)
        return;
    pthread_mutex_lock(&call->mutex);
    unsigned left = --call->refs;
    pthread_mutex_unlock(&call->mutex);
    if (left > 0)
        return;
    clear_result(call);
    pthread_mutex_destroy(&call->mutex);
    pthread_cond_destroy(&call->answered);
    free(call);
}

static void finish(struct hf__zk_call *call, int rc)
{
    pthread_mutex_lock(&call->mutex);
    call->rc = rc;
    call->done = true;
    pthread_cond_signal(&call->answered);
    pthread_mutex_unlock(&call->mutex);
    hf__zk_call_free(call);
}

void hf__zk_on_void(int rc, const void *data)
{
    finish((struct hf__zk_call *)data, rc);
}

void hf__zk_on_stat(int rc, const struct Stat *stat, const void *data)
{
    struct hf__zk_call *call = (struct hf__zk_call *)data;

    if (rc == ZOK)
        call->stat = *stat;
    finish(call, rc);
}

static int keep_text(struct hf__zk_call *call, const char *text, int len)
{
    call->text = malloc((size_t)len + 1);
    if (call->text == NULL)
        return ZSYSTEMERROR;
    if (len > 0)
        memcpy(call->text, text, (size_t)len);
    call->text[len] = '\0';
    call->text_len = len;
    return ZOK;
}

void hf__zk_on_data(int rc, const char *value, int len, const struct Stat *stat, const void *data)
{
    struct hf__zk_call *call = (struct hf__zk_call *)data;

    if (rc == ZOK) {
        call->stat = *stat;
        rc = keep_text(call, value, len > 0 ? len : 0);
    }
    finish(call, rc);
}

void hf__zk_on_path(int rc, const char *path, const struct Stat *stat, const void *data)
{
    struct hf__zk_call *call = (struct hf__zk_call *)data;

    if (rc == ZOK) {
        call->stat = *stat;
        rc = keep_text(call, path, (int)strlen(path));
    }
    finish(call, rc);
}

void hf__zk_on_name(int rc, const char *path, const void *data)
{
    (void)path;
    finish((struct hf__zk_call *)data, rc);
}

void hf__zk_on_children(int rc, const struct String_vector *names, const void *data)
{
    struct hf__zk_call *call = (struct hf__zk_call *)data;

    if (rc == ZOK && names->count > 0) {
        call->names = calloc((size_t)names->count, sizeof *call->names);
        for (int i = 0; call->names != NULL && i < names->count; i++) {
            call->names[call->name_count] = strdup(names->data[i]);
            if (call->names[call->name_count] != NULL)
                call->name_count++;
        }
        if (call->name_count != names->count)
            rc = ZSYSTEMERROR;
    }
    finish(call, rc);
}

/* The host's clock may be any; only the span that is left matters. */
struct timespec hf__zk_moment(const struct hf__zk *zk, int64_t when_ns)
{
    int64_t left_ns = when_ns - hf__now_ns(zk->base.host->env);
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    left_ns = left_ns > 0 ? left_ns : 0;
    at.tv_sec += left_ns / 1000000000 + (at.tv_nsec + left_ns % 1000000000) / 1000000000;
    at.tv_nsec = (at.tv_nsec + left_ns % 1000000000) % 1000000000;
    return at;
}

int hf__zk_wait(struct hf__zk *zk, struct hf__zk_call *call, int sent, int64_t deadline_ns)
{
    struct timespec until = hf__zk_moment(zk, deadline_ns);
    int r = 0;

    if (sent != ZOK) {
        hf__zk_call_free(call); /* the completion's share: it will not be called */
        return sent;
    }
    pthread_mutex_lock(&call->mutex);
    while (!call->done && r == 0)
        r = pthread_cond_clockwait(&call->answered, &call->mutex, CLOCK_MONOTONIC, &until);
    int rc = call->done ? call->rc : ZOPERATIONTIMEOUT;
    pthread_mutex_unlock(&call->mutex);
    return rc;
}

/* ZSYSTEMERROR is ours too (no memory for the answer), ZRUNTIMEINCONSISTENCY the library's word for an
 * answer that it could not match. */
bool hf__zk_may_be_applied(int rc)
{
    return rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZSYSTEMERROR ||
           rc == ZRUNTIMEINCONSISTENCY;
}

/* Those that mean "surely not applied" are what the library says before it has sent anything, and what
 * a server refuses without looking at it. An expired session is among them: whatever it made is gone. */
int hf__zk_fail(hf_error *err, int rc, const char *what)
{
    int code = HF_UNKNOWN;

    if (rc == ZNOAUTH || rc == ZAUTHFAILED || rc == ZINVALIDACL ||
        rc == ZSESSIONCLOSEDREQUIRESASLAUTH)
        code = HF_DENIED;
    else if (rc == ZTHROTTLEDOP || rc == ZINVALIDSTATE || rc == ZSESSIONEXPIRED ||
             rc == ZNOTREADONLY || rc == ZCLOSING)
        code = HF_UNAVAILABLE;
    else if (rc == ZMARSHALLINGERROR || rc == ZNOCHILDRENFOREPHEMERALS)
        code = HF_CORRUPT;
    hf__fail(err, code, "%s: %s%s", what, zerror(rc),
             code == HF_DENIED ? "; check user and password in the URL, and the nodes' ACL" : "");
    hf__set_store_code(err, rc);
    return code;
}

/* A write that the server has answered was seen by the leader. */
static int note_write(struct hf__zk_session *s, int64_t sent_ns, int rc)
{
    if (rc == ZOK || rc == ZNONODE || rc == ZNODEEXISTS)
        hf__zk_proved(s, sent_ns);
    return rc;
}

int hf__zk_make(struct hf__zk_session *s, const char *path, const char *data, int mode,
                int64_t deadline_ns, struct hf__zk_call *call)
{
    int64_t sent_ns = hf__now_ns(s->zk->base.host->env);
    int len = data != NULL ? (int)strlen(data) : -1;

    hf__zk_call_ref(call);
    int sent = zoo_acreate2(s->zh, path, data, len, s->zk->acl, mode, hf__zk_on_path, call);
    return note_write(s, sent_ns, hf__zk_wait(s->zk, call, sent, deadline_ns));
}

int hf__zk_delete(struct hf__zk_session *s, const char *path, int64_t deadline_ns)
{
    int64_t sent_ns = hf__now_ns(s->zk->base.host->env);
    struct hf__zk_call *call = hf__zk_call_new();

    if (call == NULL)
        return ZSYSTEMERROR;
    hf__zk_call_ref(call);
    int sent = zoo_adelete(s->zh, path, -1, hf__zk_on_void, call);
    int rc = note_write(s, sent_ns, hf__zk_wait(s->zk, call, sent, deadline_ns));
    hf__zk_call_free(call);
    return rc;
}

int hf__zk_get(struct hf__zk_session *s, const char *path, int64_t deadline_ns,
               struct hf__zk_call *call)
{
    hf__zk_call_ref(call);
    return hf__zk_wait(s->zk, call, zoo_aget(s->zh, path, 0, hf__zk_on_data, call), deadline_ns);
}

static void on_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *data)
{
    struct hf__zk_call *call = (struct hf__zk_call *)data;

    (void)stat;
    for (int i = 0; rc == ZOK && i < acl->count; i++) {
        if (strcmp(acl->data[i].id.scheme, "world") == 0)
            call->world |= acl->data[i].perms;
    }
    finish(call, rc);
}

int hf__zk_get_acl(struct hf__zk_session *s, const char *path, int64_t deadline_ns,
                   struct hf__zk_call *call)
{
    hf__zk_call_ref(call);
    return hf__zk_wait(s->zk, call, zoo_aget_acl(s->zh, path, on_acl, call), deadline_ns);
}

int hf__zk_exists(struct hf__zk_session *s, const char *path, int64_t deadline_ns,
                  struct hf__zk_call *call)
{
    hf__zk_call_ref(call);
    return hf__zk_wait(s->zk, call, zoo_aexists(s->zh, path, 0, hf__zk_on_stat, call), deadline_ns);
}

int hf__zk_make_and_list(struct hf__zk_bidding *b, const char *path, int64_t deadline_ns,
                         struct hf__zk_call *made, struct hf__zk_call *list, int *ret_listed)
{
    struct hf__zk_session *s = b->session;
    int64_t sent_ns = hf__now_ns(s->zk->base.host->env);

    hf__zk_call_ref(made);
    int sent = zoo_acreate2(s->zh, path, b->data, (int)strlen(b->data), s->zk->acl,
                            ZOO_EPHEMERAL_SEQUENTIAL, hf__zk_on_path, made);
    hf__zk_call_ref(list);
    int asked = zoo_aget_children(s->zh, b->directory, 0, hf__zk_on_children, list);
    int rc = note_write(s, sent_ns, hf__zk_wait(s->zk, made, sent, deadline_ns));
    *ret_listed = hf__zk_wait(s->zk, list, asked, deadline_ns);
    return rc;
}

int hf__zk_children(struct hf__zk_session *s, const char *path, bool sync, int64_t deadline_ns,
                    struct hf__zk_call *call)
{
    struct hf__zk_call *first = sync ? hf__zk_call_new() : NULL;

    /* Answered in order: the list is at least as new as the leader was when it got the sync. */
    if (sync && first == NULL)
        return ZSYSTEMERROR;
    if (first != NULL) {
        hf__zk_call_ref(first);
        if (zoo_async(s->zh, path, hf__zk_on_name, first) != ZOK)
            hf__zk_call_free(first);
        hf__zk_call_free(first);
    }
    hf__zk_call_ref(call);
    return hf__zk_wait(s->zk, call, zoo_aget_children(s->zh, path, 0, hf__zk_on_children, call),
                       deadline_ns);
}

int hf__zk_multi(struct hf__zk_session *s, zoo_op_t *ops, int count, int64_t deadline_ns,
                 struct hf__zk_call *call)
{
    int64_t sent_ns = hf__now_ns(s->zk->base.host->env);

    call->results = calloc((size_t)count, sizeof *call->results);
    if (call->results == NULL)
        return ZSYSTEMERROR;
    call->result_count = count;
    hf__zk_call_ref(call);
    int sent = zoo_amulti(s->zh, count, ops, call->results, hf__zk_on_void, call);
    return note_write(s, sent_ns, hf__zk_wait(s->zk, call, sent, deadline_ns));
}

static int make_one(struct hf__zk_session *s, const char *path, int mode, int64_t deadline_ns)
{
    struct hf__zk_call *call = hf__zk_call_new();

    if (call == NULL)
        return ZSYSTEMERROR;
    int rc = hf__zk_make(s, path, NULL, mode, deadline_ns, call);
    hf__zk_call_free(call);
    return rc == ZNODEEXISTS ? ZOK : rc;
}

/* The last one is a container: the server removes it some time after its last child. */
int hf__zk_make_directory(struct hf__zk_session *s, const char *path, int64_t deadline_ns)
{
    char part[HF__ZK_PATH_MAX];
    int rc = ZOK;

    for (const char *slash = strchr(path + 1, '/'); rc == ZOK && slash != NULL;
         slash = strchr(slash + 1, '/')) {
        size_t len = (size_t)(slash - path);
        if (len >= sizeof part)
            return ZBADARGUMENTS;
        memcpy(part, path, len);
        part[len] = '\0';
        rc = make_one(s, part, ZOO_PERSISTENT, deadline_ns);
    }
    if (rc == ZOK)
        rc = make_one(s, path, ZOO_CONTAINER, deadline_ns);
    return rc == ZUNIMPLEMENTED ? make_one(s, path, ZOO_PERSISTENT, deadline_ns) : rc;
}
