/* What the files of the doctor share: diagnose.c and members.c. */
#ifndef HF_STORES_ZOOKEEPER_DOCTOR_H
#define HF_STORES_ZOOKEEPER_DOCTOR_H

#include "base/report.h"
#include "stores/zookeeper/zk.h"

struct hf__zk_doctor {
    struct hf__zk *zk;
    hf_finding_callback *found;
    void *arg;
    int64_t deadline_ns;
};

/* `clause` may be NULL. */
void hf__zk_tell(const struct hf__zk_doctor *d, enum hf__level level, const char *clause,
                 const char *format, ...) HF__PRINTF(4, 5);

/* Who is there, who leads, and which known bugs they have. Needs no session. */
void hf__zk_tell_servers(const struct hf__zk_doctor *d);
/* Whether the URL names all of them. */
void hf__zk_tell_ensemble(const struct hf__zk_doctor *d, struct hf__zk_session *s);

/* Tells of the bugs of one release, "3.8.0"; `host` runs it. */
void hf__zk_tell_bugs(const struct hf__zk_doctor *d, const char *host, const char *version);

#endif
