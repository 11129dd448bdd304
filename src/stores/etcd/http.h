/* Inside the store's HTTP: one request on its way (flight.c) and what came of it (outcome.c). */
#ifndef HF_STORES_ETCD_HTTP_H
#define HF_STORES_ETCD_HTTP_H

#include "stores/etcd/etcd.h"

struct hf__etcd_body {
    char *text;
    size_t len;
};

/* A request on its way: all it needs until it is over. */
struct hf__etcd_flight {
    bool in_multi; /* not from the pool: a multi handle would end the connection it keeps */
    CURL *curl;
    struct curl_slist *headers;
    char *text; /* its body, if nobody else keeps it meanwhile */
    struct hf__etcd_body body;
};

/* Everything but the sending; of the flight only in_multi is set. Land in either case. */
int hf__etcd_take_off(struct hf__etcd *e, size_t endpoint, const struct hf__etcd_request *q,
                      int64_t until_ns, struct hf__etcd_flight *f);
void hf__etcd_land(struct hf__etcd *e, struct hf__etcd_flight *f);

struct hf__etcd_outcome {
    int code;         /* HF_ */
    bool maybe;       /* it may have been applied */
    bool no_token;    /* ask again with a fresh one */
    bool next;        /* another server may do better */
    bool passing;     /* and so may this one, later */
    bool reconnected; /* curl may have sent it twice */
    json_t *answer;   /* if code is 0 */
};

/* From what curl or the server said, with a text. `curl` has just ended. */
void hf__etcd_transport_failed(struct hf__etcd_outcome *o, CURL *curl, CURLcode c,
                               const char *where, hf_error *err);
void hf__etcd_read_answer(struct hf__etcd_outcome *o, CURL *curl, const struct hf__etcd_body *body,
                          bool stream, hf_error *err);

#endif
