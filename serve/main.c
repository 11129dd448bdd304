/* holdfast-serve: the locks of one or more stores over HTTP.
 *
 * A program of its own, started by `holdfast serve` or by systemd, with the command's options and sentences. What is
 * where:
 *
 *     listen   the socket, and whether it may be listened on     request, route   one request
 *     loop     the one thread that owns all of it                look, change     what requests do
 *     server   libmicrohttpd, limits, who is welcome (access)    stores, workers  what talks to the stores
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/serve_options.h"
#include "server.h"

#include "base/banned.h"

static bool quiet, want_help, want_version;

static const struct cli_option globals[] = {
    {'q', "quiet", CLI_FLAG, &quiet, NULL, NULL, 0, 0, "do not say where it listens"},
    {'h', "help", CLI_FLAG, &want_help, NULL, NULL, 0, 0, "print this help"},
    {'V', "version", CLI_FLAG, &want_version, NULL, NULL, 0, 0, "print the version"},
    {0},
};

static const struct cli_verb verb = {
    .name = "serve", .operands = "", .summary = CLI_SERVE_SUMMARY, .options = cli_serve_options};

static int open_lines(struct stores *stores, FILE *file)
{
    char *line = NULL;
    size_t size = 0;
    int status = 0;

    while (status == 0 && getline(&line, &size, file) >= 0) {
        line[strcspn(line, " \t\r\n")] = '\0';
        if (line[0] != '\0' && line[0] != '#')
            status = stores_open(stores, line);
    }
    if (line != NULL)
        explicit_bzero(line, size);
    free(line);
    return status;
}

static int open_url_file(struct stores *stores, const char *path)
{
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return cli_fail(EXIT_USAGE, "cannot read %s: %s", path, strerror(errno));
    int status = cli_check_rights(fileno(file), path, "x://user:password@host");
    if (status == 0)
        status = open_lines(stores, file);
    if (status == 0 && stores->count == 0)
        status = cli_fail(EXIT_USAGE, "%s names no store", path);
    fclose(file);
    return status;
}

static int open_stores(struct stores *stores)
{
    const struct cli_serve *given = &cli_serve_given;
    char *url = NULL;
    int status = 0;

    if (given->url_file != NULL)
        return open_url_file(stores, given->url_file);
    for (size_t i = 0; status == 0 && i < given->urls.count; i++)
        status = stores_open(stores, given->urls.urls[i]);
    if (status != 0 || given->urls.count > 0)
        return status;
    status = cli_find_url(&url);
    if (status == 0)
        status = stores_open(stores, url);
    free(url);
    return status;
}

static int open_listen(struct server *server, struct listen *listen)
{
    const struct cli_serve *given = &cli_serve_given;
    int status = 0;

    if (given->token_file != NULL)
        status = access_read_tokens(&server->access, given->token_file);
    if (status == 0)
        status = listen_open(listen, given->listen);
    if (status == 0)
        status = listen_use_tls(listen, given->tls_cert, given->tls_key);
    if (status == 0)
        status = listen_check(listen, server->access.has_tokens);
    server->access.any_host = listen->is_unix;
    for (size_t i = 0; i < given->hosts.count; i++)
        server->access.hosts[server->access.host_count++] = given->hosts.names[i];
    server->allow_break = given->allow_break;
    server->limits = (struct server_limits){.connections = (unsigned)given->max_connections,
                                            .idle_s = (unsigned)((given->idle_ms + 999) / 1000)};
    return status;
}

/* Inside of its owner, so that it is found again. */
struct signals {
    struct source source;
    struct server *server;
};

static void on_signal(struct source *source, uint32_t events)
{
    struct signals *signals = (struct signals *)source;

    (void)events;
    signals->server->ending = true;
}

static int take_signals(struct server *server, struct signals *signals)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    signals->server = server;
    signals->source.ready = on_signal;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files becomes an error of the store */
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd >= 0 && loop_add(&server->loop, &signals->source, fd, EPOLLIN) == 0)
        return 0;
    return cli_fail(EXIT_MACHINE, "no descriptors are to be had");
}

static int serve(struct server *server, struct listen *listen)
{
    struct signals signals = {0};
    int status = take_signals(server, &signals);

    if (status == 0)
        status = open_stores(&server->stores);
    if (status == 0)
        status = server_start(server, listen);
    if (status == 0) {
        listen->fd = -1; /* the daemon has it */
        if (!quiet) {
            printf("listening on %s://%s\n",
                   listen->is_unix            ? "http+unix"
                   : listen->tls_cert != NULL ? "https"
                                              : "http",
                   listen->shown + (listen->is_unix ? strlen("unix:") : 0));
            fflush(stdout);
        }
        server_run(server);
        server_stop(server);
    }
    stores_close(&server->stores);
    return status;
}

static int run(void)
{
    struct server *server = calloc(1, sizeof *server);
    struct listen listen;

    if (server == NULL || loop_init(&server->loop) != 0) {
        free(server);
        return cli_fail(EXIT_MACHINE, "out of memory or descriptors");
    }
    server->stores.loop = &server->loop;
    server->stores.server = server;
    server->stores.history = cli_serve_given.history;
    int status = open_listen(server, &listen);
    if (status == 0)
        status = serve(server, &listen);
    listen_clear(&listen);
    loop_clear(&server->loop);
    explicit_bzero(&server->access, sizeof server->access);
    free(server);
    return status;
}

int main(int argc, char **argv)
{
    if (getauxval(AT_SECURE) != 0)
        return cli_fail(EXIT_USAGE, "it must not run setuid, setgid or with file capabilities");
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* there are passwords in its memory */
    int count = cli_parse_options(&verb, globals, argc > 0 ? argc - 1 : 0, argv + 1);
    if (count < 0)
        return EXIT_USAGE;
    if (want_help) {
        cli_print_help(&verb, globals);
        return cli_finish(0);
    }
    if (want_version) {
        printf("holdfast-serve %s\n", hf_version());
        return cli_finish(0);
    }
    if (!cli_check_operands(&verb, count, 0))
        return EXIT_USAGE;
    return cli_finish(run());
}
