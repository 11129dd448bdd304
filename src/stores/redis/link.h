/* A connection to a Redis server, shared by the stores that are built on one or several of them:
 *
 *   wire.c      requests and replies as bytes
 *   reply.c     what a reply is made of, before it is read
 *   login.c     who we are, and whether this server may be used
 *   settings.c  what their URLs have in common
 *   who.c     who asks, as it is kept in a server
 */
#ifndef HF_STORES_REDIS_LINK_H
#define HF_STORES_REDIS_LINK_H

#include <hiredis/hiredis.h>

#include "net/pool.h"
#include "net/stream.h"
#include "net/tls.h"
#include "stores/store.h"

#define HF__REDIS_KEY_MAX    (HF_NAME_MAX + 256)
#define HF__REDIS_NUMBER_MAX INT64_C(9007199254740991) /* the largest whole number of Lua */

/* What the URL said; set at opening, then only read. */
struct hf__redis_settings {
    struct hf__servers servers; /* the server; or the sentinels that know it; or those of Redlock */
    char *path;                 /* a unix socket instead */
    struct hf__account account;
    int64_t db;
    char *client_name;
    char *key_before, *key_after; /* key_format around %s */
    bool poll;                    /* mode=poll: nobody is called */
    bool allow_evicting;
    int64_t poll_ms, recheck_ms;
    int64_t yield, yield_for_ms;
    int64_t retain_ms, history;
    char signal; /* whom to tell that a key is free: 'L' python-redis-lock, 'P' Spring; 0: nobody */
    struct hf__pool_limits limits;
    int64_t wait_replicas, replica_timeout_ms; /* 0: do not wait */
    struct hf__tls *tls;                       /* NULL: plain */
    bool tls_insecure;                         /* nobody's certificate is looked at */
};

/* What a server says of itself when we connect. */
struct hf__redis_facts {
    bool known;          /* false: INFO is not allowed */
    const char *refusal; /* why it cannot be used at all; NULL: it can */
    char product[16];    /* "Redis", "Valkey" */
    char version[24];    /* of that product */
    int64_t major;
    char policy[24]; /* maxmemory-policy; "" if not told */
    int64_t uptime_s;
    char run_id[41]; /* another one after each start; "" if not told */
};

/* Bytes to be sent. */
struct hf__redis_out {
    char *data;
    size_t len, capacity;
    size_t body; /* where the arguments begin that follow a script's name */
    bool failed; /* no memory */
};

/* What time it was at the server; see clock.c. */
struct hf__redis_clock {
    int64_t time_us;  /* 0: it does not tell */
    int64_t asked_ns; /* when it was asked last; 0: never */
    int64_t read_ns;  /* when its answer came */
};

struct hf__redis_conn {
    struct hf__pooled pooled;
    struct hf__stream stream;
    redisReader *reader;
#if HIREDIS_MAJOR < 1 /* how it makes replies, with a limit; see wire.c */
    redisReplyObjectFunctions *usual, limited;
#endif
    size_t unread; /* bytes that came since the last whole reply */
    struct hf__redis_out out;
    struct hf__redis_facts facts;
    struct hf__redis_clock clock;
    int64_t redirect; /* CLIENT TRACKING tells this client id; 0: not on */
    int64_t id;       /* the listener's own such id; 0: it is not told */
    bool broken;      /* of no more use */
    bool demoted;     /* because the server is a replica now */
};

/* wire.c -------------------------------------------------------------------- */

struct hf__redis_conn *hf__redis_conn_new(void);  /* not connected; NULL: no memory */
void hf__redis_hang_up(struct hf__redis_conn *c); /* NULL is fine */

/* A command of `argc` words; then each word. They are appended: several make a pipeline. */
void hf__redis_begin(struct hf__redis_conn *c, size_t argc);
void hf__redis_add(struct hf__redis_conn *c, const void *bytes, size_t len);
void hf__redis_add_raw(struct hf__redis_conn *c, const void *bytes, size_t len); /* as it is */
void hf__redis_add_text(struct hf__redis_conn *c, const char *text);
void hf__redis_add_number(struct hf__redis_conn *c, uint64_t number);

/* Writes the digits of a number; the place behind them. */
#define HF__REDIS_DIGITS 20
char *hf__redis_put_number(char *at, uint64_t number);

/* A command of plain words, ended by NULL. */
void hf__redis_command(struct hf__redis_conn *c, const char *word, ...);

/* Sends what was made since the last send. HF_UNAVAILABLE: not received as a whole, so the last
 * command was not done. HF_NO_MEMORY. */
int hf__redis_send(struct hf__redis_conn *c, int64_t deadline_ns, hf_error *err);

/* What a server may send for one reply, and how many parts a list in it may have. */
#define HF__REDIS_REPLY_MAX (16 << 20)
#define HF__REDIS_LIST_MAX  (1 << 20)

/* Takes bytes that have come, and gives the replies they make, one by one (NULL: not whole yet), for
 * the caller to free. HF_UNKNOWN: these are none, or there is no end to them; `broken` is set. */
int hf__redis_feed(struct hf__redis_conn *c, const char *bytes, size_t count, hf_error *err);
int hf__redis_next(struct hf__redis_conn *c, redisReply **ret_reply, hf_error *err);

/* The next reply, for the caller to free. HF_UNKNOWN: none came. A reply that is an error is a
 * reply. */
int hf__redis_receive(struct hf__redis_conn *c, int64_t deadline_ns, redisReply **ret_reply,
                      hf_error *err);

/* Both; a reply that is an error becomes one. */
int hf__redis_ask(struct hf__redis_conn *c, int64_t deadline_ns, redisReply **ret_reply,
                  hf_error *err);

/* What an error reply means; 0 if it is none. The command was not done. */
int hf__redis_error(const redisReply *reply, hf_error *err);

/* The same, and notes what it means for the connection. */
int hf__redis_take_error(struct hf__redis_conn *c, const redisReply *reply, hf_error *err);

/* reply.c -------------------------------------------------------------------- */

/* Whether it is made of what `shape` says (reply.c). Nobody reads a part of a reply before. */
bool hf__redis_fits(const redisReply *reply, const char *shape);

/* An error that begins with this word. */
bool hf__redis_is_error(const redisReply *reply, const char *word);

/* A whole number of at most 16 digits; the place behind it, NULL: it is none. */
const char *hf__redis_read_number(const char *at, int64_t *ret_number);

/* A page of SCAN: keys, as texts in element[1]; `cursor` moves on, to "0" at the end. False:
 * HF_CORRUPT, and it is none. */
#define HF__REDIS_CURSOR_SIZE 24
bool hf__redis_read_page(const redisReply *reply, char *cursor, hf_error *err);

/* What TIME says. */
bool hf__redis_read_time(const redisReply *reply, int64_t *ret_us);

/* login.c ------------------------------------------------------------------- */
#define HF__REDIS_LOGGED_IN (-1)

/* Makes the requests; their replies are then given to hf__redis_login_step() in turn, which moves
 * `*step` on from the first one until it is LOGGED_IN. HF_UNAVAILABLE, HF_DENIED, HF_INVALID,
 * HF_UNSUPPORTED (a cluster, a replica that takes writes). */
void hf__redis_login_ask(const struct hf__redis_settings *set, struct hf__redis_conn *c);
int hf__redis_login_first(const struct hf__redis_settings *set);
int hf__redis_login_step(const struct hf__redis_settings *set, struct hf__redis_conn *c, int *step,
                         const redisReply *reply, hf_error *err);

/* The number after "name:" in an INFO text, and the word; 0 and "" if it is not there. */
int64_t hf__redis_info_number(const char *info, const char *name);
void hf__redis_info_word(const char *info, const char *name, char *buf, size_t size);

/* settings.c ---------------------------------------------------------------- */

/* Rows of a store's table of options. */
#define HF__REDIS_LINK_OPTIONS                                                                 \
    {"key_format",                                                                             \
     HF__OPTION_TEXT,                                                                          \
     "holdfast:%s",                                                                            \
     0,                                                                                        \
     0,                                                                                        \
     "the key of a lock; %s is its name (written %25s in a URL). %s, lock:%s, redlock:%s ... " \
     "meet "                                                                                   \
     "other clients on their keys"},                                                           \
        {"db", HF__OPTION_NUMBER, "0", 0, 1000000, "the database, if it is not in the path"},  \
        HF__PASSWORD_OPTIONS,                                                                  \
        {"client_name", HF__OPTION_TEXT, "holdfast", 0, 0, "shown by CLIENT LIST"},            \
        HF__TLS_FILE_OPTIONS,                                                                  \
    {                                                                                          \
        "force", HF__OPTION_TEXT, NULL, 0, 0,                                                  \
            "'evicting': use a server that may evict locks when its memory is full"            \
    }

/* The servers, who we are to them, TLS, key_format, force, the limits of the pool. `form` NULL: the
 * URL names no server. `set` is zeroed before; clear it in any case. HF_INVALID, HF_DENIED,
 * HF_NO_MEMORY. */
int hf__redis_read_link(const struct hf__url *url, const struct hf__servers_form *form,
                        struct hf__redis_settings *set, hf_error *err);
void hf__redis_settings_clear(struct hf__redis_settings *set);

/* The database in the path of a URL, or that of the option. */
int hf__redis_read_db(const struct hf__url *url, int64_t *ret_db, hf_error *err);

/* Splits key_format at its %s. HF_INVALID. */
int hf__redis_key_format(const char *format, struct hf__redis_settings *set, hf_error *err);

/* who.c ------------------------------------------------------------------- */

/* "pid\0host\0user\0program\0", which the note follows; its length. `to` has room for it. */
size_t hf__redis_put_self(const struct hf__who *self, char *to, size_t size);

/* The word at `*at`, which moves behind its NUL; "" at the end. */
const char *hf__redis_next_word(const char **at, const char *end);

/* Reads it again, with the note; what it says is borrowed from there. */
void hf__redis_read_who(const char *at, const char *end, struct hf__who *who);

#endif
