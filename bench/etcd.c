/* The etcd store against the bare calls of its recipe, in turns.
 *
 *     etcd HOST:PORT ROUNDS PAIRS HANDOVERS HOLDFAST LABEL
 *
 * pair: acquire and release, against lease/grant, a transaction that creates a key, one that deletes
 * it, and lease/revoke, which is what the recipe needs of anybody; and against the server's own
 * lock/lock and lock/unlock between the same two lease calls.
 * hand-over: from just before a release to the return of the acquire that waited, with 2 and
 * with 500 waiting, against a delete and the arrival of its event at a watch; and against the same
 * with the transaction after it, in which the published recipe makes sure that its own key is still
 * there. Both once in a loop that never rests, and once as somebody who waits for a lock finds it:
 * after a pause, in which every thread of client and server has gone to sleep.
 * run: HOLDFAST run NAME -- true, against etcdctl lock NAME true. */
#include <curl/curl.h>
#include <holdfast.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "two.h"

#define KEY   "YmVuY2gva2V5"     /* bench/key */
#define OTHER "YmVuY2gva2V6"     /* bench/kez */
#define END   "YmVuY2gva2Yw"     /* bench/kf0: after both */
#define WARM  "YmVuY2gvd2FybV9f" /* bench/warm__: nobody watches it */

static const char *host, *label;

static void print(const char *figure, double us)
{
    char name[100];

    snprintf(name, sizeof name, "etcd %s: %s", label, figure);
    bench_print(name, us, "us");
}

static size_t take(char *from, size_t size, size_t count, void *ctx)
{
    char *into = ctx;
    size_t have = strlen(into), len = size * count;

    if (have + len < 4000) {
        memcpy(into + have, from, len);
        into[have + len] = '\0';
    }
    return len;
}

static void call(CURL *curl, const char *path, const char *body, char answer[4096])
{
    char url[200];

    answer[0] = '\0';
    snprintf(url, sizeof url, "http://%s/v3/%s", host, path);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    BENCH_MUST(curl_easy_perform(curl) == CURLE_OK, "%s failed", path);
    BENCH_MUST(strstr(answer, "\"error\"") == NULL, "%s: %s", path, answer);
}

static long long lease_of(const char *answer)
{
    const char *id = strstr(answer, "\"ID\":\"");

    BENCH_MUST(id != NULL, "no lease: %s", answer);
    return strtoll(id + 6, NULL, 10);
}

static void bare_pair(CURL *curl)
{
    char answer[4096], body[600];

    call(curl, "lease/grant", "{\"TTL\":\"30\"}", answer);
    long long lease = lease_of(answer);
    snprintf(body, sizeof body,
             "{\"compare\":[{\"target\":\"CREATE\",\"key\":\"" KEY "\",\"create_revision\":\"0\"}],"
             "\"success\":[{\"request_put\":{\"key\":\"" KEY "\",\"lease\":\"%lld\"}}],"
             "\"failure\":[{\"request_range\":{\"key\":\"" KEY "\"}}]}",
             lease);
    call(curl, "kv/txn", body, answer);
    call(curl, "kv/txn",
         "{\"compare\":[{\"target\":\"CREATE\",\"result\":\"GREATER\",\"key\":\"" KEY
         "\",\"create_revision\":\"0\"}],\"success\":[{\"request_delete_range\":{\"key\":\"" KEY
         "\"}}]}",
         answer);
    snprintf(body, sizeof body, "{\"ID\":\"%lld\"}", lease);
    call(curl, "lease/revoke", body, answer);
}

static void v3lock_pair(CURL *curl)
{
    char answer[4096], body[600], key[200] = "";

    call(curl, "lease/grant", "{\"TTL\":\"30\"}", answer);
    long long lease = lease_of(answer);
    snprintf(body, sizeof body, "{\"name\":\"" KEY "\",\"lease\":\"%lld\"}", lease);
    call(curl, "lock/lock", body, answer);
    const char *from = strstr(answer, "\"key\":\"");
    BENCH_MUST(from != NULL && sscanf(from, "\"key\":\"%190[^\"]", key) == 1, "%s", answer);
    snprintf(body, sizeof body, "{\"key\":\"%s\"}", key);
    call(curl, "lock/unlock", body, answer);
    snprintf(body, sizeof body, "{\"ID\":\"%lld\"}", lease);
    call(curl, "lease/revoke", body, answer);
}

static void measure_pairs(hf_client *client, CURL *curl, int pairs)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;
    hf_error err;
    int64_t start = bench_now_ns();

    for (int i = 0; i < pairs; i++) {
        BENCH_MUST(hf_acquire(client, "pair", HF_NTS, &opt, &lock, &err) == HF_OK, "%s", err.text);
        BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
    }
    print("pair, ours", (double)(bench_now_ns() - start) / pairs / 1e3);
    start = bench_now_ns();
    for (int i = 0; i < pairs; i++)
        bare_pair(curl);
    print("pair, bare", (double)(bench_now_ns() - start) / pairs / 1e3);
    start = bench_now_ns();
    for (int i = 0; i < pairs; i++)
        v3lock_pair(curl);
    print("pair, v3lock", (double)(bench_now_ns() - start) / pairs / 1e3);
}

/* Hand-over. --------------------------------------------------------------------------------------
 */
struct taker {
    hf_client *client;
    const char *name;
    pthread_t thread;
    _Atomic int64_t got_ns;
    atomic_bool waiting;
    hf_lock *lock;
};

static void on_wait(size_t position, void *arg)
{
    struct taker *t = arg;

    (void)position;
    t->waiting = true;
}

static void *acquire(void *arg)
{
    struct taker *t = arg;
    hf_options opt = HF_OPTIONS_INIT;
    hf_error err;

    opt.on_wait = on_wait;
    opt.arg = t;
    opt.owner = (uint64_t)(uintptr_t)t;
    BENCH_MUST(hf_acquire(t->client, t->name, HF_NTS, &opt, &t->lock, &err) == HF_OK, "%s",
               err.text);
    t->got_ns = bench_now_ns();
    return NULL;
}

static void start_taker(struct taker *t, hf_client *client, const char *name)
{
    *t = (struct taker){.client = client, .name = name};
    BENCH_MUST(pthread_create(&t->thread, NULL, acquire, t) == 0, "no thread");
    while (!t->waiting && t->got_ns == 0)
        usleep(100);
}

/* A server that has slept answers late, so somebody else asks it something before each measurement: a
 * process of its own, or the code of the bare side would be in the processor's cache and ours not. */
static int somebody;

static void be_somebody(int peer)
{
    CURL *curl = curl_easy_init();
    char answer[4096];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        be_told(peer);
        for (int i = 0; i < 20; i++)
            call(curl, "kv/put", "{\"key\":\"" WARM "\"}", answer);
        tell(peer);
    }
}

static void start_somebody(void)
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

/* Whoever waits does so for a while. */
static void rest(void)
{
    usleep(300000); /* every watch is under way, and everybody asleep */
    tell(somebody);
    be_told(somebody);
}

/* A queue of `crowd` takers of two clients in turn, who release one after the other. */
static void measure_handover(hf_client *holder, hf_client *const takers[2], int handovers,
                             int crowd)
{
    struct taker *all = calloc((size_t)crowd, sizeof *all);
    int64_t *took_ns = calloc((size_t)(handovers + crowd), sizeof *took_ns);
    char figure[60];
    size_t count = 0;

    while (count < (size_t)handovers) {
        hf_options opt = HF_OPTIONS_INIT;
        hf_lock *lock;
        hf_error err;
        BENCH_MUST(hf_acquire(holder, "hand", HF_NTS, &opt, &lock, &err) == HF_OK, "%s", err.text);
        for (int i = 0; i < crowd; i++)
            start_taker(&all[i], takers[i % 2], "hand");
        rest();
        for (int i = 0; i < crowd; i++) {
            int64_t start = bench_now_ns();
            BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
            pthread_join(all[i].thread, NULL);
            took_ns[count++] = all[i].got_ns - start;
            lock = all[i].lock;
        }
        BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
    }
    snprintf(figure, sizeof figure, "hand-over, ours, %d wait", crowd);
    print(figure, bench_p50_us(took_ns, count));
    free(took_ns);
    free(all);
}

struct bare_watch {
    int64_t event_ns, checked_ns;
    sem_t told;
    CURL *check;
    atomic_bool created, stop;
    pthread_t thread;
};

/* What holds while it is so: nobody was before. */
static void check_own_key(CURL *curl)
{
    char answer[4096];

    call(curl, "kv/txn",
         "{\"compare\":[{\"target\":\"CREATE\",\"key\":\"" KEY "\",\"create_revision\":\"0\"}],"
         "\"success\":[{\"request_put\":{\"key\":\"YmVuY2gvb3duCg==\"}}]}",
         answer);
}

static size_t on_event(char *from, size_t size, size_t count, void *ctx)
{
    struct bare_watch *w = ctx;
    char text[2048] = "";
    size_t len = size * count;

    memcpy(text, from, len < sizeof text - 1 ? len : sizeof text - 1);
    if (strstr(text, "\"DELETE\"") != NULL) {
        w->event_ns = bench_now_ns();
        check_own_key(w->check);
        w->checked_ns = bench_now_ns();
        sem_post(&w->told);
    }
    if (strstr(text, "created") != NULL)
        w->created = true;
    return w->stop ? 0 : len;
}

static void *watch(void *arg)
{
    struct bare_watch *w = arg;
    CURL *curl = curl_easy_init();
    char url[200];

    snprintf(url, sizeof url, "http://%s/v3/watch", host);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS,
                     "{\"create_request\":{\"key\":\"" KEY "\",\"range_end\":\"" END "\"}}");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_event);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, w);
    curl_easy_perform(curl);
    curl_easy_cleanup(curl);
    return NULL;
}

/* Two deletions in turn, like ours with two waiting; with `rests`, after a pause. */
static void measure_bare_handover(CURL *curl, int handovers, bool rests)
{
    struct bare_watch w = {.check = curl_easy_init()};
    char answer[4096];
    int64_t *took_ns = calloc((size_t)handovers, sizeof *took_ns);
    int64_t *checked_ns = calloc((size_t)handovers, sizeof *checked_ns);

    sem_init(&w.told, 0, 0);
    BENCH_MUST(pthread_create(&w.thread, NULL, watch, &w) == 0, "no thread");
    while (!w.created)
        usleep(100);
    for (int i = 0; i < handovers; i++) {
        bool first = i % 2 == 0;
        if (first) {
            call(curl, "kv/put", "{\"key\":\"" KEY "\"}", answer);
            call(curl, "kv/put", "{\"key\":\"" OTHER "\"}", answer);
        }
        if (first && rests)
            rest();
        int64_t start = bench_now_ns();
        call(curl, "kv/deleterange", first ? "{\"key\":\"" KEY "\"}" : "{\"key\":\"" OTHER "\"}",
             answer);
        sem_wait(&w.told); /* asleep, as a waiter is */
        took_ns[i] = w.event_ns - start;
        checked_ns[i] = w.checked_ns - start;
    }
    w.stop = true;
    call(curl, "kv/put", "{\"key\":\"" KEY "\"}", answer);
    call(curl, "kv/deleterange", "{\"key\":\"" KEY "\"}", answer);
    pthread_join(w.thread, NULL);
    sem_destroy(&w.told);
    curl_easy_cleanup(w.check);
    print(rests ? "hand-over, bare" : "hand-over, bare, without rest",
          bench_p50_us(took_ns, (size_t)handovers));
    print(rests ? "hand-over, bare, own key checked"
                : "hand-over, bare, own key checked, without rest",
          bench_p50_us(checked_ns, (size_t)handovers));
    free(took_ns);
    free(checked_ns);
}

/* Commands. ------------------------------------------------------------------------------------ */
static void measure_command(const char *figure, const char *const *argv)
{
    enum { RUNS = 20 };
    int64_t start = bench_now_ns();
    extern char **environ;

    for (int i = 0; i < RUNS; i++) {
        pid_t pid;
        int status;
        BENCH_MUST(posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) == 0,
                   "no %s", argv[0]);
        BENCH_MUST(waitpid(pid, &status, 0) == pid && status == 0, "%s failed", argv[0]);
    }
    print(figure, (double)(bench_now_ns() - start) / RUNS / 1e3);
}

static void measure_commands(const char *holdfast, const char *url)
{
    const char *ours[] = {holdfast, "run", "-u", url, "run", "--", "true", NULL};
    char endpoint[220];
    const char *theirs[] = {"etcdctl", "--endpoints", endpoint, "lock", "run-theirs", "true", NULL};

    snprintf(endpoint, sizeof endpoint, "%s", host);
    setenv("ETCDCTL_API", "3", 1);
    measure_command("run, ours", ours);
    if (access("/usr/bin/etcdctl", X_OK) == 0)
        measure_command("run, etcdctl lock", theirs);
}

int main(int argc, char **argv)
{
    hf_client *one, *others[2];
    hf_error err;
    char url[200];

    BENCH_MUST(argc == 7, "usage: etcd HOST:PORT ROUNDS PAIRS HANDOVERS HOLDFAST LABEL");
    host = argv[1];
    label = argv[6];
    start_somebody();
    curl_global_init(CURL_GLOBAL_DEFAULT);
    CURL *curl = curl_easy_init();
    snprintf(url, sizeof url, "etcd://%s/bench", host);
    BENCH_MUST(hf_open(url, NULL, &one, &err) == HF_OK, "%s", err.text);
    for (int i = 0; i < 2; i++)
        BENCH_MUST(hf_open(url, NULL, &others[i], &err) == HF_OK, "%s", err.text);
    for (long i = 0; i < strtol(argv[2], NULL, 10); i++) {
        measure_pairs(one, curl, (int)strtol(argv[3], NULL, 10));
        int handovers = (int)strtol(argv[4], NULL, 10);
        measure_bare_handover(curl, handovers, false);
        measure_bare_handover(curl, handovers / 10, true);
        measure_handover(one, others, handovers / 10, 2);
        measure_handover(one, others, handovers, 500);
        measure_commands(argv[5], url);
    }
    hf_close(one);
    hf_close(others[0]);
    hf_close(others[1]);
    curl_easy_cleanup(curl);
    return 0;
}
