/* Opening and closing, and the table of the store. The URL is
 * zookeeper://[user:password@]h1,h2/path; nothing is connected before the first request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "base/servers.h"
#include "base/utf8.h"
#include "stores/zookeeper/zk.h"

#include "base/banned.h"

#define DEFAULT_PREFIX "/holdfast"

static const struct hf__option options[] = {
    {.name = "fair",
     .kind = HF__OPTION_SWITCH,
     .preset = "yes",
     .help = "no: one node that all wait for, without a queue"},
    {.name = "layout",
     .kind = HF__OPTION_TEXT,
     .preset = "curator",
     .help = "curator, curator-rw or kazoo: whose clients see our nodes"},
    {.name = "acl",
     .kind = HF__OPTION_TEXT,
     .preset = "creator",
     .help = "creator: nodes are this user's alone; world: everybody may break every lock"},
    HF__PASSWORD_OPTIONS,
    {.name = "tls",
     .kind = HF__OPTION_TEXT,
     .preset = "off",
     .help = "verify is refused: the client library is built without TLS"},
    {.name = "sasl",
     .kind = HF__OPTION_TEXT,
     .preset = "off",
     .help = "a mechanism is refused: the client library is built without SASL"},
    {0},
};

/* "h1:2181,[::1]:2181", as the library wants them. */
static int read_hosts(const struct hf__url *url, char **ret_hosts, hf_error *err)
{
    static const struct hf__servers_form form = {
        .port = "2181", .max = HF__SERVERS_MAX, .example = "zookeeper://h1,h2,h3/path"};
    static const struct hf__tls_settings plain = {.mode = HF__TLS_MODE_OFF};
    struct hf__servers servers = {0};
    size_t size = 1, used = 0;
    int r = hf__servers_read(url, &form, &plain, &servers, err);

    for (size_t i = 0; r == 0 && i < servers.count; i++)
        size += (size_t)hf__server_text(&servers.list[i], NULL, 0) + 1;
    char *hosts = r == 0 ? calloc(1, size) : NULL;
    if (r == 0 && hosts == NULL)
        r = hf__fail(err, HF_NO_MEMORY, NULL);
    for (size_t i = 0; r == 0 && i < servers.count; i++) {
        if (i > 0)
            hosts[used++] = ',';
        used += (size_t)hf__server_text(&servers.list[i], hosts + used, size - used);
    }
    hf__servers_clear(&servers);
    if (r == 0)
        *ret_hosts = hosts;
    return r;
}

/* What the servers would refuse, or take for another path. The end may be a '/'. */
static int check_path(const char *path, hf_error *err)
{
    size_t len = strlen(path), part_len;

    if (len > 400)
        return hf__fail(err, HF_INVALID, "the path is too long: at most 400 bytes");
    for (const char *part = path; *part == '/' && part[1] != '\0'; part += part_len + 1) {
        part_len = strcspn(part + 1, "/");
        if (part_len == 0 || (part_len == 1 && part[1] == '.') ||
            (part_len == 2 && memcmp(part + 1, "..", 2) == 0))
            return hf__fail(err, HF_INVALID, "the path has an empty part, or one that is . or ..");
    }
    if (!hf__is_text(path, len)) /* the servers would make one path of several */
        return hf__fail(err, HF_INVALID, "the path is not UTF-8");
    if (strncmp(path, "/zookeeper", 10) == 0 && (path[10] == '\0' || path[10] == '/'))
        return hf__fail(err, HF_INVALID, "/zookeeper is ZooKeeper's own: choose another path");
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)path[i] < ' ' || path[i] == 0x7f)
            return hf__fail(err, HF_INVALID, "the path has control characters");
    }
    return 0;
}

/* What Debian's library was not built with is refused, not ignored. */
static int check_security(const struct hf__url *url, hf_error *err)
{
    const char *tls = hf__url_text(url, "tls"), *sasl = hf__url_text(url, "sasl");

    if (strcmp(tls, "off") != 0)
        return hf__fail(err, HF_UNSUPPORTED,
                        "tls=%s: libzookeeper is built without TLS here; use tls=off inside a "
                        "tunnel or a private network",
                        tls);
    if (strcmp(sasl, "off") != 0)
        return hf__fail(err, HF_UNSUPPORTED,
                        "sasl=%s: libzookeeper is built without SASL here; use a user and a "
                        "password (digest)",
                        sasl);
    return 0;
}

/* With fair=no nothing is shared with other clients, so a layout there would promise what is not so. */
static int check_layout(const struct hf__url *url, hf_error *err)
{
    const char *text = hf__url_text(url, "layout");
    enum hf__zk_layout layout;

    if (!hf__zk_layout(text, &layout))
        return hf__fail(err, HF_INVALID, "layout is curator, curator-rw or kazoo");
    if (layout != HF__ZK_LAYOUT_CURATOR && !hf__url_switch(url, "fair"))
        return hf__fail(err, HF_INVALID,
                        "layout=%s: with fair=no there is one node, which no other client sees",
                        text);
    return 0;
}

/* "user:password", as the digest scheme wants it; NULL without a user. */
static int read_credentials(const struct hf__url *url, char **ret_credentials, hf_error *err)
{
    struct hf__account account = {0};
    int r = hf__account_read(url, HF__ACCOUNT_BOTH_OR_NONE, &account, err);

    if (r == 0 && account.user != NULL && strchr(account.user, ':') != NULL)
        /* the rest would count as its password */
        r = hf__fail(err, HF_INVALID, "a user of ZooKeeper cannot have a ':' in its name");
    else if (r == 0 && account.user != NULL &&
             asprintf(ret_credentials, "%s:%s", account.user, account.password) < 0)
        r = hf__fail(err, HF_NO_MEMORY, NULL);
    hf__account_clear(&account);
    return r;
}

/* A node cannot belong to a creator who has no name, and nobody gives a lock to the world unasked. */
static int read_acl(const struct hf__url *url, struct hf__zk *zk, hf_error *err)
{
    static const struct hf__choice acls[] = {{"creator", true}, {"world", false}, {0}};
    int creator = true;
    int r = hf__url_choose(url, "acl", acls, &creator, err);

    if (r == 0 && creator && zk->credentials == NULL)
        r = hf__fail(err, HF_INVALID,
                     "without a user the nodes cannot be the creator's alone: write "
                     "zookeeper://user:password@..., or acl=world to let everybody who "
                     "reaches the servers break every lock");
    zk->acl = creator ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
    return r;
}

static void free_store(struct hf__zk *zk)
{
    struct hf__link *link;

    while ((link = hf__table_any(&zk->biddings)) != NULL) {
        struct hf__zk_bidding *b = (struct hf__zk_bidding *)link;
        b->session = NULL; /* closed */
        pthread_mutex_lock(&zk->mutex);
        hf__zk_retire(b, 0);
        pthread_mutex_unlock(&zk->mutex);
    }
    hf__table_clear(&zk->biddings);
    hf__heap_clear(&zk->timers);
    while (zk->first_wake != NULL) {
        struct hf__zk_wakeup *wake = zk->first_wake;
        zk->first_wake = wake->next;
        free(wake);
    }
    if (zk->wake_fd >= 0)
        close(zk->wake_fd);
    pthread_mutex_destroy(&zk->mutex);
    pthread_cond_destroy(&zk->changed);
    pthread_cond_destroy(&zk->due);
    hf__secret_free(zk->credentials);
    free(zk->hosts);
    free(zk->prefix);
    free(zk);
}

__attribute__((visibility("default"))) extern const struct hf__store_type hf_store_type_v1;

static int read_settings(const struct hf__url *url, struct hf__zk *zk, hf_error *err)
{
    int r = read_hosts(url, &zk->hosts, err);

    if (r == 0)
        r = check_path(url->path, err);
    if (r == 0)
        r = check_security(url, err);
    if (r == 0)
        r = check_layout(url, err);
    if (r == 0)
        r = read_credentials(url, &zk->credentials, err);
    if (r == 0)
        r = read_acl(url, zk, err);
    if (r != 0)
        return r;
    zk->fair = hf__url_switch(url, "fair");
    hf__zk_layout(hf__url_text(url, "layout"), &zk->layout);
    bool none = url->path[0] == '\0' || strcmp(url->path, "/") == 0;
    zk->prefix = strdup(none ? DEFAULT_PREFIX : url->path);
    if (zk->prefix == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    size_t len = strlen(zk->prefix);
    if (len > 1 && zk->prefix[len - 1] == '/')
        zk->prefix[len - 1] = '\0';
    return 0;
}

static int open_zk(const struct hf__url *url, const struct hf__host *host,
                   struct hf__store **ret_store, hf_error *err)
{
    struct hf__zk *zk = calloc(1, sizeof *zk);

    if (zk == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    zk->base = (struct hf__store){
        .type = &hf_store_type_v1, .host = host, .capabilities = hf_store_type_v1.capabilities};
    zk->base.calls_holders = true; /* of locks that were broken */
    zk->wake_fd = -1;
    zk->last_wake = &zk->first_wake;
    pthread_mutex_init(&zk->mutex, NULL);
    pthread_cond_init(&zk->changed, NULL);
    pthread_cond_init(&zk->due, NULL);
    host->env->random(host->env->ctx, &zk->seed, sizeof zk->seed);
    int r = read_settings(url, zk, err);
    if (r != 0) {
        free_store(zk);
        return r;
    }
    if (!zk->fair)
        zk->base.capabilities &=
            ~(uint32_t)(HF_CAN_QUEUE | HF_CAN_SHARE | HF_CAN_VALUE | HF_CAN_WANTED);
    *ret_store = &zk->base;
    return 0;
}

static void close_zk(struct hf__store *store)
{
    struct hf__zk *zk = (struct hf__zk *)store;

    hf__zk_stop_timer_thread(zk);
    hf__zk_close_all(zk);
    free_store(zk);
}

static int operate(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    switch (op->kind) {
    case HF__OPERATION_ATTEMPT:
        return hf__zk_attempt(store, op->bid, deadline_ns, ret_answer, err);
    case HF__OPERATION_BREAK:
        return hf__zk_break(store, op->bid, op->now, deadline_ns, ret_answer, err);
    case HF__OPERATION_READ:
    case HF__OPERATION_WRITE:
        return hf__zk_value(store, op, deadline_ns, ret_answer, err);
    default:
        return hf__zk_leave(store, op, deadline_ns, ret_answer, err);
    }
}

static const char *const schemes[] = {"zookeeper", NULL};

const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "zookeeper",
    .schemes = schemes,
    .summary = "a ZooKeeper ensemble, by the recipe that its other clients know",
    .capabilities = HF_CAN_SHARE | HF_CAN_LEASE | HF_CAN_NEVER | HF_CAN_DELAY | HF_CAN_QUEUE |
                    HF_CAN_PUSH | HF_CAN_TOKEN | HF_CAN_CHECK | HF_CAN_BREAK | HF_CAN_PROCESS |
                    HF_CAN_PERSIST | HF_CAN_VALUE | HF_CAN_WANTED,
    .options = options,
    .open = open_zk,
    .close = close_zk,
    .operate = operate,
    .renew = hf__zk_renew,
    .inspect = hf__zk_inspect,
    .upkeep = hf__zk_upkeep,
    .diagnose = hf__zk_diagnose,
    .wake_fd = hf__zk_wake_fd,
    .wake = hf__zk_wake,
};
