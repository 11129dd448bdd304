/* From the URL to a store.
 *
 * A server that cannot be reached is no error yet: it may come. One that answers and must not be
 * used (a wrong password, a cluster, a server that evicts locks) is refused at once. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "stores/redis/redis.h"

#include "base/banned.h"

const struct hf__option hf__redis_options[] = {
    HF__REDIS_LINK_OPTIONS,
    {"tls", HF__OPTION_TEXT, NULL, 0, 0,
     "verify or insecure; for rediss (verify is the default) and redis+sentinel (off is)"},
    {"wait_replicas", HF__OPTION_NUMBER, "0", 0, 1000,
     "a grant counts only when this many replicas have it; waiters then poll"},
    {"replica_timeout", HF__OPTION_DURATION, "500ms", 1, 60000,
     "how long to wait for the replicas"},
    {"sentinel_user", HF__OPTION_TEXT, NULL, 0, 0,
     "for redis+sentinel: the user name at the sentinels"},
    {"sentinel_password_file", HF__OPTION_TEXT, NULL, 0, 0, "a file with the sentinels' password"},
    {"sentinel_password_env", HF__OPTION_TEXT, NULL, 0, 0, "the environment variable that has it"},
    {"mode", HF__OPTION_TEXT, "push", 0, 0,
     "push: waiters are woken; poll: they ask, for a proxy without pub/sub"},
    {"poll", HF__OPTION_DURATION, "100ms", 1, 60000,
     "how often waiters poll if they are not woken, give or take 25 %"},
    {"recheck", HF__OPTION_DURATION, "1s", 10, 60000,
     "how often the first in the queue asks, although it will be woken"},
    {"yield", HF__OPTION_NUMBER, "0", 0, 1000000,
     "after this many hand-overs leave one turn to clients that poll the key; 0: never"},
    {"yield_for", HF__OPTION_DURATION, "250ms", 1, 60000,
     "how long to wait until one of them takes it"},
    {"signal", HF__OPTION_TEXT, NULL, 0, 0,
     "python-redis-lock or spring: also wake clients that wait for their own kind of message"},
    {"max_active", HF__OPTION_NUMBER, "16", 1, 100000, "connections in use at the same time"},
    {"max_idle", HF__OPTION_NUMBER, "8", 0, 100000, "connections kept when they are not in use"},
    {"idle_timeout", HF__OPTION_DURATION, "60s", 100, 86400000, "for how long they are kept"},
    {"pool_wait", HF__OPTION_SWITCH, "yes", 0, 0,
     "wait for a connection when all are in use, or fail"},
    {0},
};

/* Their keys say which kind of lock it is, and where its waiters listen. */
static int read_signal(const struct hf__url *url, struct hf__redis_settings *set, hf_error *err)
{
    static const struct hf__choice kinds[] = {{"python-redis-lock", 'L'}, {"spring", 'P'}, {0}};
    size_t before = strlen(set->key_before);
    int signal = 0;
    int r = hf__url_choose(url, "signal", kinds, &signal, err);
    bool python = signal == 'L';

    if (r != 0 || signal == 0)
        return r;
    if (python && (strcmp(set->key_before, "lock:") != 0 || set->key_after[0] != '\0'))
        return hf__fail(err, HF_INVALID,
                        "signal=python-redis-lock goes with key_format=lock:%%25s, its own keys");
    if (!python && (before < 2 || set->key_before[before - 1] != ':' || set->key_after[0] != '\0'))
        return hf__fail(err, HF_INVALID,
                        "signal=spring goes with key_format=REGISTRY:%%25s, where REGISTRY is the "
                        "registry's key");
    set->signal = (char)signal;
    return 0;
}

/* redis+sentinel://sentinels/master: its path is a name, and the database an option only. */
static int read_sentinels(const struct hf__url *url, struct hf__redis *s, hf_error *err)
{
    static const struct hf__servers_form form = {.port = "26379",
                                                 .max = HF__REDIS_SENTINELS_MAX,
                                                 .example = "redis+sentinel://h1,h2,h3/master"};
    const char *master = url->path + (url->path[0] == '/');

    if (master[0] == '\0' || strchr(master, '/') != NULL)
        return hf__fail(err, HF_INVALID, "name the master as in %s", form.example);
    s->set.db = hf__url_number(url, "db");
    int r = hf__copy_text(master, &s->sentinels.master_name, err);
    if (r == 0)
        r = hf__account_read_options(url, "sentinel_", HF__ACCOUNT_USER_NEEDS_PASSWORD,
                                     &s->sentinels.account, err);
    return r != 0 ? r : hf__redis_read_link(url, &form, &s->set, err);
}

static int read_settings(const struct hf__url *url, struct hf__redis *s, hf_error *err)
{
    static const struct hf__servers_form server = {.port = "6379", .max = 1, .host = "localhost"};
    static const struct hf__choice modes[] = {{"push", false}, {"poll", true}, {0}};
    struct hf__redis_settings *set = &s->set;
    int poll = false, r;

    if (strcmp(url->scheme, "redis+sentinel") == 0) {
        r = read_sentinels(url, s, err);
    } else if (strcmp(url->scheme, "redis+unix") == 0) {
        if (url->host[0] != '\0' || url->path[0] != '/')
            return hf__fail(
                err, HF_INVALID,
                "name the socket with its whole path: redis+unix:///run/redis.sock?db=0");
        set->db = hf__url_number(url, "db"); /* the path is the socket's */
        r = hf__copy_text(url->path, &set->path, err);
        if (r == 0)
            r = hf__redis_read_link(url, NULL, set, err);
    } else {
        r = hf__redis_read_link(url, &server, set, err);
        if (r == 0)
            r = hf__redis_read_db(url, &set->db, err);
    }
    if (r == 0)
        r = hf__url_choose(url, "mode", modes, &poll, err);
    if (r == 0)
        r = read_signal(url, set, err);
    set->wait_replicas = hf__url_number(url, "wait_replicas");
    set->replica_timeout_ms = hf__url_number(url, "replica_timeout");
    /* With replicas a hand-over would be believed before they have it. */
    set->poll = poll || set->wait_replicas > 0;
    set->retain_ms = hf__url_number(url, "retain");
    set->history = hf__url_number(url, "history");
    set->poll_ms = hf__url_number(url, "poll");
    set->recheck_ms = hf__url_number(url, "recheck");
    set->yield = hf__url_number(url, "yield");
    set->yield_for_ms = hf__url_number(url, "yield_for");
    return r;
}

int hf__redis_open(const struct hf__url *url, const struct hf__host *host,
                   struct hf__store **ret_store, hf_error *err)
{
    struct hf__redis *s = calloc(1, sizeof *s);

    if (s == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    s->base = (struct hf__store){
        .type = &hf_store_type_v1, .host = host, .capabilities = hf_store_type_v1.capabilities};
    int r = hf__pool_init(&s->pool, &hf__redis_pool_type, s, host->env, err);
    int listener = hf__listener_init(&s->listener, &hf__redis_listener_type, s, host->env, err);
    if (r == 0)
        r = listener;
    if (r == 0)
        r = read_settings(url, s, err);
    if (r == 0) {
        struct hf__redis_conn *c = NULL;
        s->pool.limits = s->set.limits;
        s->pool.host_count = 1;
        s->base.calls_holders = s->sentinels.master_name != NULL;
        if (s->set.poll)
            s->base.capabilities &= ~(uint32_t)HF_CAN_PUSH;
        s->self_len = hf__redis_put_self(host->self, s->self, sizeof s->self);
        /* A server that must not be used is found out now, not with the first lock. */
        r = hf__redis_take(s, hf__now_ns(host->env) + host->op_timeout_ms * HF__NS_PER_MS, &c, err);
        if (r == 0)
            hf__redis_give(s, c);
        if (r == HF_UNAVAILABLE)
            r = 0;
    }
    if (r != 0) {
        hf__redis_close(&s->base);
        return r;
    }
    *ret_store = &s->base;
    return 0;
}

void hf__redis_close(struct hf__store *store)
{
    struct hf__redis *s = (struct hf__redis *)store;

    hf__listener_clear(&s->listener);
    hf__redis_hang_up(s->sentinels.subscriber);
    hf__redis_unwatch_all(s);
    hf__redis_unbar_all(s);
    hf__pool_clear(&s->pool);
    hf__redis_settings_clear(&s->set);
    hf__account_clear(&s->sentinels.account);
    free(s->sentinels.master_name);
    free(s);
}
