/* What the URL says: where the servers are, who we are, and what is put before every name. */
#ifndef HF_STORES_ETCD_SETTINGS_H
#define HF_STORES_ETCD_SETTINGS_H

#include "net/tls.h"

#define HF__ETCD_ENDPOINTS 16

struct hf__etcd_endpoint {
    char *url;               /* "http://host:2379", for messages */
    const char *host, *port; /* borrowed from the servers */
    bool plain;              /* no TLS */
};

struct hf__etcd_settings {
    struct hf__servers servers;
    struct hf__etcd_endpoint endpoints[HF__ETCD_ENDPOINTS];
    size_t endpoint_count;
    char *prefix; /* "" or ends in '/' */
    struct hf__account account;
    struct hf__tls *tls; /* NULL: no endpoint wants it */
    bool tls_insecure, has_certificate;
};

extern const struct hf__option hf__etcd_options[];

/* Clear in either case. */
int hf__etcd_settings_read(const struct hf__url *url, struct hf__etcd_settings *set, hf_error *err);
void hf__etcd_settings_clear(struct hf__etcd_settings *set);

#endif
