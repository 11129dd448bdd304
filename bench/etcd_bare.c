/* See etcd.h: what the store is measured against, and what both sides need. */
#include "etcd.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "two.h"

#define KEY   "YmVuY2gva2V5"     /* bench/key */
#define OTHER "YmVuY2gva2V6"     /* bench/kez */
#define END   "YmVuY2gva2Yw"     /* bench/kf0: after both */
#define WARM  "YmVuY2gvd2FybV9f" /* bench/warm__: nobody watches it */

void etcd_print(const char *figure, double us)
{
    char name[100];

    snprintf(name, sizeof name, "etcd %s: %s", etcd_label, figure);
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
    snprintf(url, sizeof url, "http://%s/v3/%s", etcd_host, path);
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

void etcd_bare_pair(CURL *curl)
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

void etcd_v3lock_pair(CURL *curl)
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

    snprintf(url, sizeof url, "http://%s/v3/watch", etcd_host);
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

void etcd_bare_handover(CURL *curl, int handovers, bool rests)
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
            etcd_rest();
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
    etcd_print(rests ? "hand-over, bare" : "hand-over, bare, without rest",
               bench_p50_us(took_ns, (size_t)handovers));
    etcd_print(rests ? "hand-over, bare, own key checked"
                     : "hand-over, bare, own key checked, without rest",
               bench_p50_us(checked_ns, (size_t)handovers));
    free(took_ns);
    free(checked_ns);
}
