/* One connection. libmariadb is used without blocking, so that nothing outlives its deadline; the
 * names of hosts are looked up by our own resolver for the same reason, except where TLS has to
 * know the name. Each server of the list gets its share of the time, so that one that swallows
 * packets does not use up what the next one needs. The library never reconnects by itself. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "net/resolve.h"
#include "stores/mysql/mysql.h"

#include "base/banned.h"

int hf__my_wait(struct hf__my *s, MYSQL *my, int wanted, int64_t deadline_ns)
{
    for (;;) {
        struct pollfd fd = {.fd = mysql_get_socket(my),
                            .events = (short)((wanted & MYSQL_WAIT_READ ? POLLIN : 0) |
                                              (wanted & MYSQL_WAIT_WRITE ? POLLOUT : 0) |
                                              (wanted & MYSQL_WAIT_EXCEPT ? POLLPRI : 0))};
        int64_t left_ns = deadline_ns - hf__now_ns(s->base.host->env);
        int64_t left_ms = (left_ns + HF__NS_PER_MS - 1) / HF__NS_PER_MS;
        if (left_ns <= 0)
            return 0;
        int n = poll(&fd, 1, left_ms > 60000 ? 60000 : (int)left_ms);
        if (n < 0 && errno != EINTR)
            return wanted & ~MYSQL_WAIT_TIMEOUT;
        if (n > 0)
            return (fd.revents & POLLIN ? MYSQL_WAIT_READ : 0) |
                   (fd.revents & POLLOUT ? MYSQL_WAIT_WRITE : 0) |
                   (fd.revents & POLLPRI ? MYSQL_WAIT_EXCEPT : 0) |
                   (fd.revents & (POLLERR | POLLHUP) ? wanted & ~MYSQL_WAIT_TIMEOUT : 0);
    }
}

static void set_tls(MYSQL *my, const struct hf__sql_settings *set, enum hf__tls_mode tls)
{
    my_bool enforce = tls != HF__TLS_MODE_OFF, verify = tls == HF__TLS_MODE_VERIFY;

    mysql_optionsv(my, MYSQL_OPT_SSL_ENFORCE, &enforce);
    mysql_optionsv(my, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
    if (!enforce)
        return;
    if (set->tls_ca != NULL && verify) /* with an authority the library verifies, told or not */
        mysql_optionsv(my, MYSQL_OPT_SSL_CA, set->tls_ca);
    if (set->tls_cert != NULL)
        mysql_optionsv(my, MYSQL_OPT_SSL_CERT, set->tls_cert);
    if (set->tls_key != NULL)
        mysql_optionsv(my, MYSQL_OPT_SSL_KEY, set->tls_key);
    mysql_optionsv(my, MARIADB_OPT_TLS_VERSION, "TLSv1.2,TLSv1.3");
}

static MYSQL *prepare(struct hf__my *s, const struct hf__server *host)
{
    MYSQL *my = mysql_init(NULL);
    my_bool no = 0;
    unsigned zero = 0, tcp = MYSQL_PROTOCOL_TCP; /* "localhost" would mean the socket */

    if (my == NULL)
        return NULL;
    if (s->set.option_file != NULL) {
        mysql_optionsv(my, MYSQL_READ_DEFAULT_FILE, s->set.option_file);
        mysql_optionsv(my, MYSQL_READ_DEFAULT_GROUP, "client");
    }
    mysql_optionsv(my, MYSQL_OPT_NONBLOCK, 0);
    mysql_optionsv(my, MYSQL_OPT_RECONNECT, &no);
    mysql_optionsv(my, MYSQL_OPT_LOCAL_INFILE, &zero);
    mysql_optionsv(my, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_optionsv(my, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", s->set.program);
    mysql_optionsv(my, MYSQL_OPT_CONNECT_ATTR_ADD, "_holdfast_version", HF_VERSION);
    if (host->host[0] != '/')
        mysql_optionsv(my, MYSQL_OPT_PROTOCOL, &tcp);
    set_tls(my, &s->sql.set, host->tls);
    return my;
}

/* The host as the library should see it: an address, unless the certificate must carry the name. */
static int find_address(struct hf__my *s, const struct hf__server *host, int64_t deadline_ns,
                        char *address, size_t size, hf_error *err)
{
    struct addrinfo *list = NULL;

    snprintf(address, size, "%s", host->host);
    if (host->tls == HF__TLS_MODE_VERIFY)
        return 0;
    int r = hf__resolve(host->host, host->port, s->base.host->env, deadline_ns, &list, err);
    if (r != 0)
        return hf__wrap(err, r, "mysql");
    getnameinfo(list->ai_addr, list->ai_addrlen, address, (socklen_t)size, NULL, 0, NI_NUMERICHOST);
    freeaddrinfo(list);
    return 0;
}

/* The library's sockets would be inherited by whatever program we execute. */
static void keep_private(MYSQL *my)
{
    int fd = mysql_get_socket(my);

    if (fd >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static int connect_by(struct hf__my *s, MYSQL *my, const struct hf__server *host,
                      int64_t deadline_ns, hf_error *err)
{
    const struct hf__sql_settings *set = &s->sql.set;
    char address[256] = "";
    MYSQL *done = NULL;
    bool local = host->host[0] == '/';
    int r = local ? 0 : find_address(s, host, deadline_ns, address, sizeof address, err);

    if (r != 0)
        return r;
    int wants = mysql_real_connect_start(&done, my, local ? NULL : address, set->account.user,
                                         set->account.password, set->database,
                                         local ? 0 : (unsigned)strtoul(host->port, NULL, 10),
                                         local ? host->host : NULL, CLIENT_MULTI_RESULTS);
    keep_private(my);
    while (wants != 0) {
        int came = hf__my_wait(s, my, wants, deadline_ns);
        if (came == 0)
            return hf__fail(err, HF_UNAVAILABLE, "mysql: %s does not answer", host->host);
        wants = mysql_real_connect_cont(&done, my, came);
        keep_private(my); /* perhaps another one, of the host's next address */
    }
    if (done == NULL)
        return hf__my_fail(mysql_errno(my), mysql_error(my), true, err);
    if (host->tls != HF__TLS_MODE_OFF && mysql_get_ssl_cipher(my) == NULL)
        return hf__my_fail(2026, "the server does not offer TLS", true, err); /* no downgrade */
    return 0;
}

/* A peer that vanished without a word is noticed within half a minute. */
static void keep_alive(MYSQL *my)
{
    int fd = mysql_get_socket(my), one = 1, idle_s = 10, between_s = 3, most_ms = 15000;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most_ms, sizeof most_ms);
}

/* What each operation relies on, whatever the server's defaults and its init_connect say. A statement that waits for a
 * row ends when its client has given up. */
static int set_session(struct hf__my *s, struct hf__my_conn *c, int64_t deadline_ns, hf_error *err)
{
    char sql[700];
    MYSQL_ROW row = NULL;

    snprintf(sql, sizeof sql,
             "SET time_zone = '+00:00', autocommit = 1, completion_type = 0,"
             " innodb_lock_wait_timeout = %" PRId64
             ", sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION',"
             " sql_select_limit = 18446744073709551615, sql_safe_updates = 0, sql_big_selects = 1,"
             " sql_auto_is_null = 0, unique_checks = 1, character_set_client = utf8mb4,"
             " character_set_results = utf8mb4, collation_connection = utf8mb4_general_ci",
             s->base.host->op_timeout_ms / 1000 + 1);
    int r = hf__my_run(s, c, sql, deadline_ns, err);
    if (r == 0)
        r = hf__my_run(s, c, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
                       deadline_ns, err);
    if (r != 0)
        return r;
    MYSQL_RES *result =
        hf__my_look(s, c, "SELECT CONNECTION_ID(), @@global.read_only", deadline_ns, &row, err);
    if (result == NULL)
        return HF_UNAVAILABLE;
    c->id = (uint64_t)hf__sql_integer(row[0], 0);
    c->proxied = c->id != mysql_thread_id(c->my);
    if (hf__sql_integer(row[1], 0) != 0)
        r = hf__fail(err, HF_UNAVAILABLE,
                     "mysql: this server is read-only; name the primary as well");
    mysql_free_result(result);
    return r;
}

static int dial_host(struct hf__my *s, const struct hf__server *host, int64_t deadline_ns,
                     struct hf__my_conn *c, hf_error *err)
{
    c->my = prepare(s, host);
    if (c->my == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    int r = connect_by(s, c->my, host, deadline_ns, err);
    if (r == 0) {
        keep_alive(c->my);
        r = set_session(s, c, deadline_ns, err);
    }
    return r == HF_UNKNOWN ? HF_UNAVAILABLE : r;
}

static int dial(void *owner, size_t host, int64_t deadline_ns, struct hf__pooled **ret_conn,
                hf_error *err)
{
    struct hf__my *s = owner;
    struct hf__my_conn *c = calloc(1, sizeof *c);

    if (c == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    int r = dial_host(s, &s->sql.set.servers.list[host], deadline_ns, c, err);
    if (r == 0) {
        hf__sql_note_dial(&s->base);
        *ret_conn = &c->pooled;
        return 0;
    }
    c->broken = true;
    hf__my_hang_up(c);
    if (err != NULL)
        err->code = r;
    return r;
}

/* The library says good-bye in a blocking write: it gets no socket to block on. */
void hf__my_hang_up(struct hf__my_conn *c)
{
    if (c == NULL)
        return;
    if (c->my != NULL) {
        int fd = mysql_get_socket(c->my);
        if (c->broken && fd >= 0)
            shutdown(fd, SHUT_RDWR);
        mysql_close(c->my);
    }
    if (c->take != NULL)
        mysql_stmt_close(c->take);
    if (c->free != NULL)
        mysql_stmt_close(c->free);
    free(c);
}

bool hf__my_is_quiet(const struct hf__my_conn *c)
{
    struct pollfd fd = {.fd = mysql_get_socket(c->my), .events = POLLIN};

    return poll(&fd, 1, 0) == 0;
}

static void hang_up(struct hf__pooled *conn)
{
    hf__my_hang_up((struct hf__my_conn *)conn);
}

static bool is_alive(void *owner, struct hf__pooled *conn, int64_t idle_ns, int64_t deadline_ns)
{
    (void)idle_ns, (void)deadline_ns;
    bool alive = hf__my_is_quiet((struct hf__my_conn *)conn);
    if (!alive)
        hf__sql_note_loss(&((struct hf__my *)owner)->sql);
    return alive;
}

static bool is_crowded(const hf_error *why)
{
    return why->store_code == 1040 || why->store_code == 1203 || why->store_code == 1226;
}

const struct hf__pool_type hf__my_pool_type = {
    .store = "mysql",
    .dial = dial,
    .hang_up = hang_up,
    .is_alive = is_alive,
    .is_crowded = is_crowded,
};

int hf__my_dial(struct hf__my *s, int64_t deadline_ns, struct hf__my_conn **ret_conn, hf_error *err)
{
    struct hf__pooled *conn = NULL;
    int r = hf__pool_dial(&s->sql.pool, deadline_ns, &conn, err);

    if (r == 0)
        *ret_conn = (struct hf__my_conn *)conn;
    return r;
}

int hf__my_borrow(struct hf__my *s, int64_t deadline_ns, struct hf__my_conn **ret_conn,
                  hf_error *err)
{
    struct hf__pooled *conn = NULL;
    int r = hf__pool_take(&s->sql.pool, deadline_ns, &conn, err);

    if (r == 0)
        *ret_conn = (struct hf__my_conn *)conn;
    return r;
}

void hf__my_give_back(void *store, void *conn)
{
    struct hf__my *s = store;
    struct hf__my_conn *c = conn;

    if (c->lost)
        hf__sql_note_loss(&s->sql);
    hf__pool_give(&s->sql.pool, &c->pooled, !c->broken);
}
