/* See etcd.h: what the store is measured against, and what both sides need. The calls are the same as
 * the store's, by the same client of gRPC. */
#include "etcd.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "grpc/conn.h"
#include "stores/etcd/message.h"
#include "two.h"

static const struct hf__etcd_key KEY = {.len = 9, .bytes = "bench/key"};
static const struct hf__etcd_key OTHER = {.len = 9, .bytes = "bench/kez"};
static const struct hf__etcd_key END = {.len = 9, .bytes = "bench/kf0"}; /* after both */
static const struct hf__etcd_key OWN = {.len = 9, .bytes = "bench/own"};
static const struct hf__etcd_key WARM = {.len = 10, .bytes = "bench/warm"}; /* nobody watches it */

void etcd_print(const char *figure, double us)
{
    char name[100];

    snprintf(name, sizeof name, "etcd %s: %s", etcd_label, figure);
    bench_print(name, us, "us");
}

static int64_t deadline(void)
{
    return hf__now_ns(&hf__system_env) + 10000 * HF__NS_PER_MS;
}

struct hf__grpc_conn *etcd_dial(void)
{
    struct hf__grpc_route route = {.env = &hf__system_env};
    struct hf__grpc_conn *conn = NULL;
    hf_error err;
    char host[100];

    snprintf(host, sizeof host, "%.*s", (int)strcspn(etcd_host, ":"), etcd_host);
    route.address.host = host;
    route.address.port = etcd_host + strlen(host) + 1;
    BENCH_MUST(hf__grpc_dial(&route, deadline(), &conn, &err) == 0, "%s", err.text);
    return conn;
}

/* The answer is to be cleared. */
static struct hf__buffer call(struct hf__grpc_conn *conn, const char *path, struct hf__buffer body)
{
    struct hf__grpc_request request = {.path = path, .body = &body, .timeout_ms = 10000};
    hf_error err = {0};
    struct hf__grpc_call *call = hf__grpc_begin(conn, &request, &err);

    BENCH_MUST(call != NULL, "%s: %s", path, err.text);
    BENCH_MUST(hf__grpc_finish(conn, call, deadline(), &err) == HF__GRPC_END_ANSWERED &&
                   call->status == HF__GRPC_STATUS_OK,
               "%s: %s %s", path, err.text, call->message);
    struct hf__buffer answer = call->in;
    call->in = (struct hf__buffer){0};
    hf__grpc_release(conn, call);
    return answer;
}

static void commit(struct hf__grpc_conn *conn, struct hf__etcd_txn *t)
{
    struct hf__buffer answer = call(conn, "/etcdserverpb.KV/Txn", hf__etcd_written(t));

    hf__buffer_clear(&answer);
}

static int64_t grant(struct hf__grpc_conn *conn)
{
    struct hf__buffer answer =
        call(conn, "/etcdserverpb.Lease/LeaseGrant", hf__etcd_grant_request(0, 30));
    struct hf__slice rest = {answer.data, answer.len}, message;
    struct hf__etcd_lease lease;

    BENCH_MUST(hf__grpc_take(&rest, &message) == 1 && hf__etcd_lease_read(message, &lease),
               "no lease");
    hf__buffer_clear(&answer);
    return lease.id;
}

static void end_lease(struct hf__grpc_conn *conn, int64_t lease)
{
    struct hf__buffer body = {0};

    hf__etcd_lease_request(&body, lease);
    struct hf__buffer answer = call(conn, "/etcdserverpb.Lease/LeaseRevoke", body);
    hf__buffer_clear(&answer);
}

void etcd_bare_pair(struct hf__grpc_conn *conn)
{
    struct hf__etcd_txn enter = {0}, leave = {0};
    int64_t lease = grant(conn);

    hf__etcd_compare(&enter, &KEY, 0);
    hf__etcd_put(&enter, &KEY, "", lease);
    hf__etcd_otherwise(&enter);
    hf__etcd_get(&enter, &KEY);
    commit(conn, &enter);
    hf__etcd_compare_above(&leave, &KEY, NULL, 0);
    hf__etcd_delete(&leave, &KEY);
    commit(conn, &leave);
    end_lease(conn, lease);
}

/* LockRequest and UnlockRequest of the v3lock service. */
void etcd_v3lock_pair(struct hf__grpc_conn *conn)
{
    int64_t lease = grant(conn);
    struct hf__buffer lock = {0}, unlock = {0};
    struct hf__slice message;
    struct hf__proto_field f;

    size_t place = hf__grpc_begin_message(&lock);
    hf__proto_bytes(&lock, 1, KEY.bytes, KEY.len);
    hf__proto_number(&lock, 2, (uint64_t)lease);
    hf__grpc_end_message(&lock, place);
    struct hf__buffer answer = call(conn, "/v3lockpb.Lock/Lock", lock);
    struct hf__slice rest = {answer.data, answer.len};
    BENCH_MUST(hf__grpc_take(&rest, &message) == 1, "no answer");
    place = hf__grpc_begin_message(&unlock);
    for (struct hf__proto_reader r = hf__proto_reader_of(message); hf__proto_next(&r, &f);) {
        if (f.number == 2)
            hf__proto_bytes(&unlock, 1, f.bytes.data, f.bytes.len);
    }
    hf__grpc_end_message(&unlock, place);
    hf__buffer_clear(&answer);
    answer = call(conn, "/v3lockpb.Lock/Unlock", unlock);
    hf__buffer_clear(&answer);
    end_lease(conn, lease);
}

static void put(struct hf__grpc_conn *conn, const struct hf__etcd_key *key)
{
    struct hf__etcd_txn t = {0};

    hf__etcd_put(&t, key, "", 0);
    commit(conn, &t);
}

static void delete (struct hf__grpc_conn *conn, const struct hf__etcd_key *key)
{
    struct hf__etcd_txn t = {0};

    hf__etcd_delete(&t, key);
    commit(conn, &t);
}

static int somebody;

static void be_somebody(int peer)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct hf__grpc_conn *conn = etcd_dial();
    for (;;) {
        be_told(peer);
        for (int i = 0; i < 20; i++)
            put(conn, &WARM);
        tell(peer);
    }
}

void etcd_start_somebody(void)
{
    int ends[2];

    BENCH_MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0, "socketpair failed");
    pid_t pid = fork();
    BENCH_MUST(pid >= 0, "fork failed");
    if (pid == 0)
        be_somebody(ends[1]);
    close(ends[1]);
    somebody = ends[0];
}

void etcd_rest(void)
{
    usleep(300000); /* every watch is under way, and everybody asleep */
    tell(somebody);
    be_told(somebody);
}

struct bare_watch {
    int64_t event_ns, checked_ns;
    sem_t told;
    struct hf__grpc_conn *conn;
    atomic_bool created, stop;
    pthread_t thread;
};

/* What holds while it is so: nobody was before. */
static void check_own_key(struct hf__grpc_conn *conn)
{
    struct hf__etcd_txn t = {0};

    hf__etcd_compare(&t, &KEY, 0);
    hf__etcd_put(&t, &OWN, "", 0);
    commit(conn, &t);
}

static void hear(struct bare_watch *w, struct hf__slice message)
{
    struct hf__etcd_notice notice;
    struct hf__etcd_kv kv;

    BENCH_MUST(hf__etcd_notice_read(message, &notice), "no notice");
    if (notice.created)
        w->created = true;
    while (hf__etcd_next_event(&notice, &kv)) {
        w->event_ns = bench_now_ns();
        check_own_key(w->conn);
        w->checked_ns = bench_now_ns();
        sem_post(&w->told);
    }
}

/* Sleeps until there is something, and takes it, as who waits for a lock does. */
static void *watch(void *arg)
{
    struct bare_watch *w = arg;
    struct hf__buffer body = {0}, in = {.cap = 1 << 20};
    struct hf__grpc_request request = {
        .path = "/etcdserverpb.Watch/Watch", .body = &body, .open = true};
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC), bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = bell_fd};

    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, bell_fd, &event);
    hf__etcd_write_watch(&body,
                         &(struct hf__etcd_watch_request){.key = hf__etcd_slice(&KEY),
                                                          .end = hf__etcd_slice(&END),
                                                          .id = 1,
                                                          .unwanted = HF__ETCD_UNWANTED_PUTS});
    struct hf__grpc_conn *conn = etcd_dial();
    struct hf__grpc_call *call = hf__grpc_begin(conn, &request, NULL);
    BENCH_MUST(call != NULL, "no watch");
    hf__grpc_listen(conn, epoll_fd, bell_fd);
    while (!w->stop) {
        BENCH_MUST(epoll_wait(epoll_fd, &event, 1, -1) >= 0, "no wait");
        BENCH_MUST(hf__grpc_hear(conn, call, &in), "the watch ended");
        struct hf__slice rest = {in.data, in.len}, message;
        while (hf__grpc_take(&rest, &message) == 1)
            hear(w, message);
        hf__buffer_drop(&in, in.len - rest.len);
    }
    hf__grpc_release(conn, call);
    hf__grpc_unref(conn);
    hf__buffer_clear(&in);
    close(epoll_fd);
    close(bell_fd);
    return NULL;
}

void etcd_bare_handover(struct hf__grpc_conn *conn, int handovers, bool rests)
{
    struct bare_watch w = {.conn = etcd_dial()};
    int64_t *took_ns = calloc((size_t)handovers, sizeof *took_ns);
    int64_t *checked_ns = calloc((size_t)handovers, sizeof *checked_ns);

    sem_init(&w.told, 0, 0);
    BENCH_MUST(pthread_create(&w.thread, NULL, watch, &w) == 0, "no thread");
    while (!w.created)
        usleep(100);
    for (int i = 0; i < handovers; i++) {
        bool first = i % 2 == 0;
        if (first) {
            put(conn, &KEY);
            put(conn, &OTHER);
        }
        if (first && rests)
            etcd_rest();
        int64_t start = bench_now_ns();
        delete (conn, first ? &KEY : &OTHER);
        sem_wait(&w.told); /* asleep, as a waiter is */
        took_ns[i] = w.event_ns - start;
        checked_ns[i] = w.checked_ns - start;
    }
    w.stop = true;
    put(conn, &KEY);
    delete (conn, &KEY);
    pthread_join(w.thread, NULL);
    sem_destroy(&w.told);
    hf__grpc_unref(w.conn);
    etcd_print(rests ? "hand-over, bare" : "hand-over, bare, without rest",
               bench_p50_us(took_ns, (size_t)handovers));
    etcd_print(rests ? "hand-over, bare, own key checked"
                     : "hand-over, bare, own key checked, without rest",
               bench_p50_us(checked_ns, (size_t)handovers));
    free(took_ns);
    free(checked_ns);
}
