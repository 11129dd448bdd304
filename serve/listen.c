/* See listen.h. */
#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/cli.h"

#include "base/banned.h"

#define DEFAULT_ADDRESS "127.0.0.1:8117"
#define FIRST_HANDED    3 /* as sd_listen_fds(3) has it */
#define PEM_MAX         (256 * 1024)

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
    struct sockaddr_storage room;
};

static bool is_loopback(const union address *a)
{
    static const unsigned char mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127};

    if (a->any.sa_family == AF_INET)
        return ntohl(a->in.sin_addr.s_addr) >> 24 == 127;
    return a->any.sa_family == AF_INET6 && (IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr) ||
                                            memcmp(&a->in6.sin6_addr, mapped, sizeof mapped) == 0);
}

/* Where it listens is what the kernel says, not what was asked for. */
static int look_at_socket(struct listen *listen)
{
    union address a = {0};
    socklen_t len = sizeof a;
    char host[64], port[16];
    int accepts = 0;
    socklen_t size = sizeof accepts;

    if (getsockname(listen->fd, &a.any, &len) != 0 ||
        getsockopt(listen->fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) != 0 || !accepts)
        return cli_fail(EXIT_USAGE, "what was handed down is not a socket that listens");
    listen->is_unix = a.any.sa_family == AF_UNIX;
    listen->is_loopback = is_loopback(&a);
    if (listen->is_unix)
        snprintf(listen->shown, sizeof listen->shown, "unix:%.*s", (int)sizeof a.un.sun_path,
                 a.un.sun_path);
    else if (getnameinfo(&a.any, len, host, sizeof host, port, sizeof port,
                         NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(listen->shown, sizeof listen->shown,
                 a.any.sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    return 0;
}

/* What a server that was killed has left would keep the next one out. */
static void remove_stale(const union address *a)
{
    struct stat st;

    if (lstat(a->un.sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, &a->any, sizeof a->un) != 0 && errno == ECONNREFUSED)
        unlink(a->un.sun_path);
    if (fd >= 0)
        close(fd);
}

/* `listen` is a word of ours below. */
static int accept_from(int fd)
{
    return listen(fd, SOMAXCONN);
}

static int bind_to(struct listen *listen, const union address *a, socklen_t len, const char *text)
{
    int yes = 1;
    mode_t mask = umask(0177); /* of a unix socket: for the same user only */

    listen->fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listen->fd >= 0)
        setsockopt(listen->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    int r = listen->fd < 0 ? -1 : bind(listen->fd, &a->any, len);
    int error = errno;
    umask(mask);
    if (r == 0 && accept_from(listen->fd) != 0)
        r = -1, error = errno;
    if (r != 0)
        return cli_fail(EXIT_STORE, "cannot listen on %s: %s", text, strerror(error));
    return look_at_socket(listen);
}

static int open_unix(struct listen *listen, const char *path)
{
    union address a = {.un.sun_family = AF_UNIX};

    if (path[0] == '\0' || strlen(path) >= sizeof a.un.sun_path)
        return cli_fail(EXIT_USAGE, "the path of a unix socket has 1 to %zu bytes",
                        sizeof a.un.sun_path - 1);
    memcpy(a.un.sun_path, path, strlen(path));
    remove_stale(&a);
    return bind_to(listen, &a, sizeof a.un, path);
}

static int open_inet(struct listen *listen, const char *text)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    const char *colon = strrchr(text, ':');
    struct addrinfo *found;
    union address a;
    char host[128];

    if (colon == NULL || colon == text || (size_t)(colon - text) >= sizeof host)
        return cli_fail(EXIT_USAGE,
                        "'--listen' takes HOST:PORT or unix:PATH, such as 127.0.0.1:8117, not '%s'",
                        text);
    bool bracket = text[0] == '[' && colon[-1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(colon - text) - 2 * bracket, text + bracket);
    int r = getaddrinfo(host, colon + 1, &hints, &found);
    if (r != 0)
        return cli_fail(EXIT_USAGE, "cannot listen on %s: %s", text, gai_strerror(r));
    socklen_t len = found->ai_addrlen;
    memcpy(&a, found->ai_addr, len);
    freeaddrinfo(found);
    return bind_to(listen, &a, len, text);
}

/* LISTEN_FDS of systemd: one socket, if they are meant for us. */
static bool take_handed_down(struct listen *listen)
{
    const char *pid = secure_getenv("LISTEN_PID"), *count = secure_getenv("LISTEN_FDS");

    if (pid == NULL || count == NULL || strtol(pid, NULL, 10) != getpid() ||
        strcmp(count, "1") != 0)
        return false;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    listen->fd = FIRST_HANDED;
    fcntl(listen->fd, F_SETFD, FD_CLOEXEC);
    fcntl(listen->fd, F_SETFL, fcntl(listen->fd, F_GETFL) | O_NONBLOCK);
    return true;
}

int listen_open(struct listen *listen, const char *address)
{
    *listen = (struct listen){.fd = -1};
    if (address == NULL && take_handed_down(listen))
        return look_at_socket(listen);
    if (address == NULL)
        address = DEFAULT_ADDRESS;
    if (strncmp(address, "unix:", 5) == 0)
        return open_unix(listen, address + 5);
    return open_inet(listen, address);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = file != NULL ? malloc(PEM_MAX + 1) : NULL;
    size_t len = text != NULL ? fread(text, 1, PEM_MAX + 1, file) : 0;
    bool ok = text != NULL && !ferror(file) && len <= PEM_MAX;

    if (file != NULL)
        fclose(file);
    if (ok) {
        text[len] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

int listen_use_tls(struct listen *listen, const char *cert_file, const char *key_file)
{
    if ((cert_file == NULL) != (key_file == NULL))
        return cli_fail(EXIT_USAGE, "--tls-cert and --tls-key belong together");
    if (cert_file == NULL)
        return 0;
    listen->tls_cert = read_file(cert_file);
    if (listen->tls_cert == NULL)
        return cli_fail(EXIT_USAGE, "cannot read %s: %s", cert_file, strerror(errno));
    listen->tls_key = read_file(key_file);
    if (listen->tls_key == NULL)
        return cli_fail(EXIT_USAGE, "cannot read %s: %s", key_file, strerror(errno));
    return 0;
}

int listen_check(const struct listen *listen, bool has_tokens)
{
    if (listen->is_unix || listen->is_loopback || (has_tokens && listen->tls_cert != NULL))
        return 0;
    return cli_fail(
        EXIT_USAGE,
        "other machines reach %s: it needs --token-file, and --tls-cert with --tls-key; "
        "or listen on 127.0.0.1 or unix:PATH behind a proxy",
        listen->shown);
}

void listen_clear(struct listen *listen)
{
    if (listen->fd >= 0)
        close(listen->fd);
    if (listen->tls_key != NULL)
        explicit_bzero(listen->tls_key, strlen(listen->tls_key));
    free(listen->tls_cert);
    free(listen->tls_key);
    listen->fd = -1;
    listen->tls_cert = listen->tls_key = NULL;
}
