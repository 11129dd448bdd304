/* See server.h. libmicrohttpd runs inside of our loop: its descriptor is one among others, so that a request, a stream
 * and a bid never need a lock among themselves. */
#include "server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/cli.h"
#include "stream.h"

#include "base/banned.h"

#define CONNECTION_MEMORY 8192 /* for the head of a request, and what is read and written at once */
#define BEAT_MS           1000
#define LAST_WORDS_MS     2000 /* for what is still to be sent when the server ends */

static void *see_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
    (void)connection;
    return request_new(cls, uri);
}

static void refuse(struct request *request, unsigned status, int code, const char *text)
{
    reply_refuse(&request->reply, status, code, text);
}

/* A browser that was told by a name server of somebody else that his host is ours would name that host. */
static bool names_us(struct request *request)
{
    if (access_is_our_host(&request->server->access, request_header(request, "Host")))
        return true;
    refuse(request, 421, HF_DENIED,
           "the Host header names another host; start the server with --host NAME if it is called "
           "so");
    return false;
}

/* Nor may a page of somebody else ask in the name of whoever looks at it. */
static bool is_no_stranger(struct request *request)
{
    if (request->route->role == ROLE_NONE ||
        access_is_our_origin(request_header(request, "Host"), request_header(request, "Origin"),
                             request_header(request, "Sec-Fetch-Site")))
        return true;
    refuse(request, 403, HF_DENIED, "a page of another origin may not ask");
    return false;
}

static bool has_role(struct request *request, enum role wanted)
{
    if (wanted == ROLE_NONE)
        return true;
    request->role = access_role(&request->server->access, request_header(request, "Authorization"));
    if (request->role >= wanted)
        return true;
    if (request->role == ROLE_NONE)
        refuse(request, 401, HF_DENIED, "a token is needed: Authorization: Bearer TOKEN");
    else
        refuse(request, 403, HF_DENIED, "the role of this token does not allow that");
    return false;
}

static bool has_json(struct request *request)
{
    const char *type = request_header(request, "Content-Type");
    size_t len = type != NULL ? strcspn(type, "; ") : 0;

    return len == strlen(REPLY_JSON) && strncasecmp(type, REPLY_JSON, len) == 0;
}

/* By its head. Whatever is wrong is in the reply then. */
static void admit(struct request *request, const char *method)
{
    unsigned status = 0;

    request->state = REQUEST_BODY;
    if (!names_us(request))
        return;
    request->route = request->target.text != NULL ? route_find(request, method, &status) : NULL;
    if (request->route == NULL && status == 405)
        refuse(request, 405, HF_INVALID, "this path is not for that method");
    else if (request->route == NULL)
        refuse(request, 404, HF_NOT_FOUND, "there is nothing at this path; see /v1/openapi.json");
    else if (is_no_stranger(request) && has_role(request, request->route->role) &&
             request->route->has_body && !has_json(request))
        refuse(request, 415, HF_INVALID, "the body must be JSON: Content-Type: application/json");
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **context)
{
    struct request *request = *context;

    (void)cls, (void)url, (void)version;
    if (request == NULL)
        return MHD_NO;
    if (request->state == REQUEST_NEW) {
        request->connection = connection;
        admit(request, method);
        return request->reply.status != 0 ? request_answer(request) : MHD_YES;
    }
    if (*size > 0) {
        if (request->state == REQUEST_BODY && request->reply.status == 0 &&
            !request_take_body(request, data, *size))
            refuse(request, 413, HF_INVALID, "the body is too long");
        *size = 0;
        return MHD_YES;
    }
    if (request->state == REQUEST_BODY && request->reply.status == 0)
        request->route->start(request);
    return request->state == REQUEST_WORKING ? MHD_YES : request_answer(request);
}

static void completed(void *cls, struct MHD_Connection *connection, void **context,
                      enum MHD_RequestTerminationCode why)
{
    struct request *request = *context;

    (void)cls, (void)connection;
    *context = NULL;
    if (request == NULL)
        return;
    if (request->over != NULL)
        request->over(request, why == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    request_free(request);
}

/* A machine that has vanished says no farewell: what lives on its connections must not live on. The kernel asks, also
 * while we have nothing to send, and gives up when nothing is confirmed for so long. A unix socket refuses it. */
static void notice_silence(int fd, unsigned idle_s)
{
    const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, (int)(idle_s + 1) / 2},
        {IPPROTO_TCP, TCP_KEEPINTVL, (int)(idle_s + 3) / 4},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, (int)idle_s * 1000},
    };

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                   sizeof options[i].value);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct server *server = cls;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    (void)context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        server->counters.connections++;
        if (info != NULL)
            notice_silence(info->connect_fd, server->limits.idle_s);
    } else {
        server->counters.connections--;
    }
}

void server_count(struct server *server, const struct route *route, unsigned status)
{
    (void)route;
    server->counters.answers[status / 100 % 6]++;
}

static void http_is_ready(struct source *source, uint32_t events)
{
    (void)source, (void)events; /* MHD_run() follows every turn */
}

static struct MHD_Daemon *start_daemon(struct server *server, const struct listen *listen)
{
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, listen->tls_cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, listen->tls_key},
        {MHD_OPTION_END, 0, NULL},
    };
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO;

    if (listen->tls_cert != NULL)
        flags |= MHD_USE_TLS;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, handle, server, MHD_OPTION_LISTEN_SOCKET, listen->fd,
        MHD_OPTION_URI_LOG_CALLBACK, see_uri, server, MHD_OPTION_NOTIFY_COMPLETED, completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_CONNECTION_LIMIT,
        server->limits.connections, MHD_OPTION_CONNECTION_TIMEOUT, server->limits.idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_ARRAY, listen->tls_cert != NULL ? tls : tls + 2, MHD_OPTION_END);
}

/* A descriptor for each connection, and some for the stores. */
static int allow_descriptors(const struct server *server)
{
    struct rlimit limit;
    rlim_t wanted = server->limits.connections + 256;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return 0;
    limit.rlim_cur = wanted;
    if (limit.rlim_max < wanted && geteuid() == 0)
        limit.rlim_max = wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return 0;
    return cli_fail(EXIT_MACHINE,
                    "%u connections need %ju descriptors; allow them, or say fewer "
                    "with --max-connections",
                    server->limits.connections, (uintmax_t)wanted);
}

int server_start(struct server *server, const struct listen *listen)
{
    int status = allow_descriptors(server);

    if (status != 0)
        return status;
    server->daemon = start_daemon(server, listen);
    const union MHD_DaemonInfo *info =
        server->daemon != NULL ? MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)
                               : NULL;
    server->http.ready = http_is_ready;
    if (info == NULL || loop_add(&server->loop, &server->http, info->epoll_fd, EPOLLIN) != 0)
        return cli_fail(EXIT_MACHINE, "the HTTP server cannot be started%s",
                        listen->tls_cert != NULL ? "; look at --tls-cert and --tls-key" : "");
    return 0;
}

static int next_timeout(const struct server *server, int limit_ms)
{
    MHD_UNSIGNED_LONG_LONG ms;

    if (MHD_get_timeout(server->daemon, &ms) == MHD_YES && ms < (MHD_UNSIGNED_LONG_LONG)limit_ms)
        return (int)ms;
    return limit_ms;
}

static void turn(struct server *server, int limit_ms)
{
    MHD_run(server->daemon);
    loop_turn(&server->loop, next_timeout(server, limit_ms));
    if (loop_now_ms() < server->beat_ms)
        return;
    server->beat_ms = loop_now_ms() + BEAT_MS;
    stream_beat(server);
}

void server_run(struct server *server)
{
    while (!server->ending)
        turn(server, BEAT_MS);
}

/* Whether somebody works on one of them, who must not find it gone. */
static bool are_worked_on(const struct server *server)
{
    const struct request *request = server->requests;

    while (request != NULL && request->state != REQUEST_WORKING)
        request = request->next;
    return request != NULL;
}

/* Whoever still waits for something is told, and may read it for a moment. */
void server_stop(struct server *server)
{
    int64_t until_ms = loop_now_ms() + LAST_WORDS_MS;

    close(MHD_quiesce_daemon(server->daemon));
    stores_stop(&server->stores);
    stream_end_all(server);
    while (are_worked_on(server) || (server->requests != NULL && loop_now_ms() < until_ms))
        turn(server, 50);
    loop_remove(&server->loop, &server->http);
    MHD_stop_daemon(server->daemon);
}
