/* See live.h. */
#include "redis/live.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

redisContext *redis;

redisContext *stranger(void)
{
    redisContext *c = redisConnectUnix(getenv("HOLDFAST_TEST_REDIS_SOCKET"));

    assert_true(c != NULL && c->err == 0);
    redisSetTimeout(c, (struct timeval){.tv_sec = AWAIT_MS / 1000});
    return c;
}

int set_up(void **state)
{
    (void)state;
    redis = stranger();
    freeReplyObject(ask(redis, "FLUSHALL"));
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    redisFree(redis);
    return 0;
}

static redisReply *ask_list(redisContext *c, const char *format, va_list words)
{
    redisReply *reply = redisvCommand(c, format, words);

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, reply != NULL ? reply->str : c->errstr);
    return reply;
}

redisReply *ask(redisContext *c, const char *format, ...)
{
    va_list words;

    va_start(words, format);
    redisReply *reply = ask_list(c, format, words);
    va_end(words);
    return reply;
}

long long ask_number(redisContext *c, const char *format, ...)
{
    va_list words;

    va_start(words, format);
    redisReply *reply = ask_list(c, format, words);
    va_end(words);
    long long number = reply->integer;
    freeReplyObject(reply);
    return number;
}

char *ask_text(redisContext *c, const char *format, ...)
{
    va_list words;

    va_start(words, format);
    redisReply *reply = ask_list(c, format, words);
    va_end(words);
    char *text = reply->str != NULL ? strdup(reply->str) : NULL;
    freeReplyObject(reply);
    return text;
}

long long info_number(const char *section, const char *field)
{
    char *text = ask_text(redis, "INFO %s", section);
    const char *at = strstr(text, field);
    long long number = at != NULL ? strtoll(at + strlen(field), NULL, 10) : 0;

    free(text);
    return number;
}

long long calls_of(const char *command)
{
    char field[60];

    snprintf(field, sizeof field, "cmdstat_%s:calls=", command);
    return info_number("commandstats", field);
}

int was_called(void *unused)
{
    (void)unused;
    return calls_of("evalsha") > 0;
}

int is_watched(void *unused)
{
    (void)unused;
    return info_number("stats", "tracking_total_keys:") == 1;
}

const char *url_of(int port, const char *options)
{
    static __thread char url[400];
    const char *server = getenv("HOLDFAST_TEST_REDIS");

    if (port == 0)
        snprintf(url, sizeof url, "redis://%s/0?%s", server, options);
    else
        snprintf(url, sizeof url, "redis://127.0.0.1:%d/0?%s", port, options);
    if (options[0] == '\0')
        url[strlen(url) - 1] = '\0';
    return url;
}

int free_port(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&here, size), 0);
    getsockname(fd, (struct sockaddr *)&here, &size);
    close(fd);
    return ntohs(here.sin_port);
}

static int answers(void *ctx)
{
    struct server *s = ctx;
    redisContext *c = redisConnect("127.0.0.1", s->port);
    redisReply *reply = c->err == 0 ? redisCommand(c, "PING") : NULL;
    bool yes = reply != NULL;

    freeReplyObject(reply);
    redisFree(c);
    return yes;
}

static void become_server(const struct server *s, const char *const *options)
{
    char port[16];
    const char *argv[40] = {"redis-server", "--bind", "127.0.0.1",   "127.0.0.2",
                            "--port",       port,     "--dir",       s->dir,
                            "--save",       "",       "--daemonize", "no"};
    int argc = 12, null = open("/dev/null", O_RDWR);

    snprintf(port, sizeof port, "%d", s->port);
    while (options != NULL && *options != NULL)
        argv[argc++] = *options++;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it ends with a test that fails, too */
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    execvp(argv[0], (char *const *)argv);
    _exit(127);
}

void server_start(struct server *s, const char *const *options)
{
    if (s->dir[0] == '\0') {
        snprintf(s->dir, sizeof s->dir, "/tmp/holdfast-redis.XXXXXX");
        assert_non_null(mkdtemp(s->dir));
    }
    if (s->port == 0)
        s->port = free_port();
    s->pid = fork();
    if (s->pid == 0)
        become_server(s, options);
    await("a redis-server to answer", answers, s);
}

void server_kill(struct server *s)
{
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

void server_clear(struct server *s)
{
    char command[100];

    if (s->pid > 0)
        server_kill(s);
    snprintf(command, sizeof command, "rm -rf '%s'", s->dir);
    assert_int_equal(system(command), 0);
}

redisContext *server_stranger(const struct server *s)
{
    redisContext *c = redisConnect("127.0.0.1", s->port);

    assert_int_equal(c->err, 0);
    return c;
}

hf_client *open_live(const char *options)
{
    return open_url(url_of(0, options));
}
