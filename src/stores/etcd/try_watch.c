/* Trying what waiters rely on, for doctor: a key is put, and a watch tells of it. The key is the slot of
 * a lease that nobody else has, and goes with it. */
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "stores/etcd/etcd.h"

#include "base/banned.h"

#define LEASE_S 5

struct trial {
    struct hf__etcd *e;
    struct hf__grpc_conn *conn;
    struct hf__grpc_call *call;
    int epoll_fd, bell_fd;
    struct hf__buffer in;
    struct hf__etcd_key key;
    int64_t lease, deadline_ns;
    hf_error *err;
};

static int begin(struct trial *t, size_t endpoint)
{
    struct hf__buffer body = {0};
    struct hf__grpc_request request = {
        .path = "/etcdserverpb.Watch/Watch", .body = &body, .open = true};
    struct epoll_event event = {.events = EPOLLIN};
    int r = hf__etcd_dial(t->e, endpoint, t->deadline_ns, &t->conn, t->err);

    if (r < 0)
        return r;
    hf__etcd_write_watch(
        &body, &(struct hf__etcd_watch_request){
                   .key = hf__etcd_slice(&t->key), .id = 1, .unwanted = HF__ETCD_UNWANTED_DELETES});
    pthread_mutex_lock(&t->e->mutex);
    request.token = t->e->cluster.token;
    t->call = hf__grpc_begin(t->conn, &request, t->err);
    pthread_mutex_unlock(&t->e->mutex);
    t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    t->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (t->epoll_fd < 0 || t->bell_fd < 0 ||
        epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, t->bell_fd, &event) < 0)
        return hf__fail_errno(t->err, HF_SYSTEM, "no descriptor");
    if (t->call != NULL)
        hf__grpc_listen(t->conn, t->epoll_fd, t->bell_fd);
    return t->call != NULL ? 0 : t->err->code;
}

/* Until the server has said that it watches, or, with `event`, that something has happened. */
static int await(struct trial *t, bool event)
{
    const struct hf_env *env = t->e->base.host->env;
    struct hf__etcd_notice notice;
    struct hf__etcd_kv kv;
    struct hf__slice message;

    for (;;) {
        if (hf__wait_fd(t->epoll_fd, POLLIN, env, t->deadline_ns) != 0)
            return hf__fail(t->err, HF_UNAVAILABLE, "nothing has come in time");
        bool goes_on = hf__grpc_hear(t->conn, t->call, &t->in);
        struct hf__slice rest = {t->in.data, t->in.len};
        bool told = false;
        while (hf__grpc_take(&rest, &message) == 1 && hf__etcd_notice_read(message, &notice)) {
            if (notice.canceled)
                return hf__fail(t->err, HF_DENIED, "the server has refused to watch");
            told |= event ? hf__etcd_next_event(&notice, &kv) : notice.created;
        }
        hf__buffer_drop(&t->in, t->in.len - rest.len);
        if (told)
            return 0;
        if (!goes_on)
            return hf__fail(t->err, HF_UNAVAILABLE, "the server has ended it");
    }
}

static int put(struct trial *t)
{
    struct hf__etcd_txn txn = {0};
    struct hf__etcd_answer answer;

    hf__etcd_put(&txn, &t->key, "", t->lease);
    int r = hf__etcd_commit(t->e, &txn, t->deadline_ns, &answer, t->err);
    hf__etcd_answer_clear(&answer);
    return r;
}

static void clear(struct trial *t)
{
    if (t->call != NULL) {
        hf__grpc_deafen(t->conn);
        hf__grpc_release(t->conn, t->call);
    }
    hf__grpc_unref(t->conn);
    if (t->epoll_fd >= 0)
        close(t->epoll_fd);
    if (t->bell_fd >= 0)
        close(t->bell_fd);
    hf__buffer_clear(&t->in);
    hf__etcd_lease_revoke(t->e, t->lease, t->deadline_ns, NULL);
    free(t);
}

int64_t hf__etcd_try_watch(struct hf__etcd *e, size_t endpoint, int64_t deadline_ns, hf_error *err)
{
    struct trial *t = calloc(1, sizeof *t);
    int64_t given_s, sent_ns = 0;

    if (t == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    *t = (struct trial){
        .e = e, .epoll_fd = -1, .bell_fd = -1, .deadline_ns = deadline_ns, .err = err};
    int r = hf__etcd_lease_new(e, LEASE_S, deadline_ns, &t->lease, &given_s, err);
    if (r < 0) {
        free(t);
        return r;
    }
    hf__etcd_slot_key(e, t->lease, &t->key);
    r = begin(t, endpoint);
    if (r == 0)
        r = await(t, false);
    sent_ns = hf__now_ns(e->base.host->env);
    if (r == 0)
        r = put(t);
    if (r == 0)
        r = await(t, true);
    int64_t took_ns = hf__now_ns(e->base.host->env) - sent_ns;
    clear(t);
    return r < 0 ? r : took_ns / 1000;
}
