/* Many requests at once, and such that nobody waits for.
 *
 * Both go over curl's multi handles, to which their connections belong. */
#include <stdlib.h>

#include "stores/etcd/http.h"

#include "util/banned.h"

#define WAVE 8 /* requests under way at once in a batch */

/* One wave: as many as there are connections, all sent before the first answer is awaited. */
static void fly(struct hf__etcd *e, CURLM *multi, size_t endpoint, struct hf__etcd_many *all,
                size_t count, hf_error *err)
{
    struct hf__etcd_flight flights[WAVE] = {0};
    struct hf__etcd_outcome o;
    int running = 0, left;
    CURLMsg *done;

    for (size_t i = 0; i < count; i++) {
        const struct hf__etcd_request *q = &all[i].request;
        flights[i].in_multi = true;
        if (q->body != NULL && hf__etcd_take_off(e, endpoint, q, q->deadline_ns, &flights[i]) == 0)
            curl_multi_add_handle(multi, flights[i].curl);
    }
    do {
        curl_multi_perform(multi, &running);
        if (running > 0)
            curl_multi_poll(multi, NULL, 0, 100, NULL);
    } while (running > 0);
    while ((done = curl_multi_info_read(multi, &left)) != NULL) {
        size_t i = 0;
        while (i < count && flights[i].curl != done->easy_handle)
            i++;
        if (done->msg != CURLMSG_DONE || i == count)
            continue;
        o = (struct hf__etcd_outcome){0};
        if (done->data.result != CURLE_OK)
            hf__etcd_transport_failed(&o, flights[i].curl, done->data.result,
                                      e->set.endpoints[endpoint], err);
        else
            hf__etcd_read_answer(&o, flights[i].curl, &flights[i].body, all[i].request.stream, err);
        all[i].answer = o.answer;
        all[i].code = o.next || o.no_token ? HF_UNAVAILABLE : o.code;
    }
    for (size_t i = 0; i < count; i++) {
        if (flights[i].curl != NULL)
            curl_multi_remove_handle(multi, flights[i].curl);
        hf__etcd_land(e, &flights[i]);
    }
}

/* The connections belong to the multi handle: it is kept with the store, for one batch at a time.
 */
void hf__etcd_call_many(struct hf__etcd *e, struct hf__etcd_many *all, size_t count, hf_error *err)
{
    pthread_mutex_lock(&e->mutex);
    size_t endpoint = e->endpoint;
    bool no_token = e->set.user != NULL && e->token == NULL;
    CURLM *multi = e->multi;
    e->multi = NULL;
    pthread_mutex_unlock(&e->mutex);

    for (size_t i = 0; i < count; i++)
        all[i].code = HF_UNAVAILABLE;
    if (multi == NULL)
        multi = curl_multi_init();
    for (size_t i = 0; multi != NULL && !no_token && count > 1 && i < count; i += WAVE)
        fly(e, multi, endpoint, all + i, count - i < WAVE ? count - i : WAVE, err);
    for (size_t i = 0; i < count; i++) {
        if (all[i].code == HF_UNAVAILABLE)
            all[i].code = hf__etcd_call(e, all[i].request, &all[i].answer, err);
        else
            free(all[i].request.body);
        all[i].request.body = NULL;
    }
    pthread_mutex_lock(&e->mutex);
    bool kept = e->multi == NULL;
    if (kept)
        e->multi = multi;
    pthread_mutex_unlock(&e->mutex);
    if (!kept)
        curl_multi_cleanup(multi);
}

/* Requests that nobody waits for. -------------------------------------------------------------- */
struct hf__etcd_partings {
    CURLM *multi;
    struct hf__etcd_flight flights[WAVE]; /* without a curl: free */
};

static void end_flight(struct hf__etcd *e, struct hf__etcd_partings *p, size_t i)
{
    curl_multi_remove_handle(p->multi, p->flights[i].curl);
    hf__etcd_land(e, &p->flights[i]);
    p->flights[i].curl = NULL;
}

/* Goes on until at most so many are under way, and the last one is at least sent. */
static void go_on(struct hf__etcd *e, struct hf__etcd_partings *p, size_t most, CURL *last,
                  int64_t until_ns)
{
    curl_off_t sent_us = 1;
    int running, left;
    CURLMsg *done;

    for (;;) {
        curl_multi_perform(p->multi, &running);
        if (last != NULL)
            curl_easy_getinfo(last, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
        if (running == 0 || (sent_us > 0 && (size_t)running <= most) ||
            hf__now_ns(e->base.host->env) >= until_ns)
            break;
        curl_multi_poll(p->multi, NULL, 0, 20, NULL);
    }
    while ((done = curl_multi_info_read(p->multi, &left)) != NULL) {
        for (size_t i = 0; done->msg == CURLMSG_DONE && i < WAVE; i++) {
            if (p->flights[i].curl == done->easy_handle) {
                end_flight(e, p, i);
                break;
            }
        }
    }
}

static void send_one(struct hf__etcd *e, struct hf__etcd_partings *p, size_t endpoint,
                     struct hf__etcd_request *q)
{
    size_t i = 0;

    go_on(e, p, WAVE - 1, NULL, q->deadline_ns);
    while (i < WAVE && p->flights[i].curl != NULL)
        i++;
    if (i == WAVE)
        return;
    p->flights[i] = (struct hf__etcd_flight){.in_multi = true};
    if (hf__etcd_take_off(e, endpoint, q, q->deadline_ns, &p->flights[i]) < 0) {
        hf__etcd_land(e, &p->flights[i]);
        p->flights[i].curl = NULL;
        return;
    }
    p->flights[i].text = q->body; /* until it lands */
    q->body = NULL;
    curl_multi_add_handle(p->multi, p->flights[i].curl);
    go_on(e, p, WAVE, p->flights[i].curl, q->deadline_ns);
}

static void partings_free(struct hf__etcd *e, struct hf__etcd_partings *p, int64_t until_ns)
{
    if (p == NULL)
        return;
    go_on(e, p, 0, NULL, until_ns);
    for (size_t i = 0; i < WAVE; i++) {
        if (p->flights[i].curl != NULL)
            end_flight(e, p, i);
    }
    curl_multi_cleanup(p->multi);
    free(p);
}

/* One caller at a time has those that are under way; if two have made some, one waits for its own.
 */
void hf__etcd_send_off(struct hf__etcd *e, struct hf__etcd_request q)
{
    pthread_mutex_lock(&e->mutex);
    size_t endpoint = e->endpoint;
    struct hf__etcd_partings *p = e->partings;
    e->partings = NULL;
    pthread_mutex_unlock(&e->mutex);

    if (p == NULL && (p = calloc(1, sizeof *p)) != NULL && (p->multi = curl_multi_init()) == NULL) {
        free(p);
        p = NULL;
    }
    if (p != NULL && q.body != NULL)
        send_one(e, p, endpoint, &q);
    free(q.body);

    pthread_mutex_lock(&e->mutex);
    bool kept = e->partings == NULL;
    if (kept)
        e->partings = p;
    pthread_mutex_unlock(&e->mutex);
    if (!kept)
        partings_free(e, p, q.deadline_ns);
}

void hf__etcd_partings_clear(struct hf__etcd *e)
{
    int64_t now_ns = hf__now_ns(e->base.host->env);

    partings_free(e, e->partings, now_ns + e->base.host->op_timeout_ms * HF__NS_PER_MS);
    e->partings = NULL;
}
