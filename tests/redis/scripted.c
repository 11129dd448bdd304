/* See scripted.h. One thread a connection, ended by shutting its descriptor down. */
#include "redis/scripted.h"

#include <arpa/inet.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 512

struct scripted {
    int fd, port;
    pthread_t listener;
    pthread_mutex_t mutex;
    char *info, command[32], *answer;
    size_t answer_len, requests, sent, count;
    int fds[CONNECTIONS_MAX];
    pthread_t threads[CONNECTIONS_MAX];
};

struct connection {
    struct scripted *s;
    int fd;
};

static void send_all(struct scripted *s, int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        bytes += n;
        len -= (size_t)n;
        pthread_mutex_lock(&s->mutex);
        s->sent += (size_t)n;
        pthread_mutex_unlock(&s->mutex);
    }
}

static char *usual_answer(const struct scripted *s, const char *word)
{
    char *text = NULL;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (strcasecmp(word, "INFO") == 0) {
        if (asprintf(&text, "$%zu\r\n%s\r\n", strlen(s->info), s->info) < 0)
            abort();
    } else if (strcasecmp(word, "TIME") == 0) {
        if (asprintf(&text, "*2\r\n$10\r\n%010lld\r\n$6\r\n%06ld\r\n", (long long)now.tv_sec,
                     now.tv_nsec / 1000) < 0)
            abort();
    } else if (strcasecmp(word, "EVALSHA") == 0 || strcasecmp(word, "EVAL") == 0) {
        text = strdup("-ERR not scripted\r\n");
    } else {
        text = strdup("+OK\r\n");
    }
    return text;
}

static bool is_log_in(const char *word)
{
    static const char *const words[] = {"AUTH", "SELECT", "CLIENT", "INFO", "SCRIPT", "TIME"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(word, words[i]) == 0)
            return true;
    }
    return false;
}

static void answer(struct scripted *s, int fd, const redisReply *request)
{
    const char *word =
        request->type == REDIS_REPLY_ARRAY && request->elements > 0 ? request->element[0]->str : "";
    char *text;
    size_t len;

    pthread_mutex_lock(&s->mutex);
    s->requests++;
    bool every = s->answer != NULL && s->command[0] == '\0' && !is_log_in(word);
    if (s->answer != NULL && (every || strcasecmp(word, s->command) == 0)) {
        text = malloc(s->answer_len + 1);
        len = s->answer_len;
        memcpy(text, s->answer, len);
    } else {
        text = usual_answer(s, word);
        len = strlen(text);
    }
    pthread_mutex_unlock(&s->mutex);
    send_all(s, fd, text, len);
    free(text);
}

static void *serve(void *arg)
{
    struct connection *c = arg;
    redisReader *reader = redisReaderCreate();
    char buf[16384];
    ssize_t n;

    while ((n = recv(c->fd, buf, sizeof buf, 0)) > 0) {
        void *request = NULL;
        redisReaderFeed(reader, buf, (size_t)n);
        while (redisReaderGetReply(reader, &request) == REDIS_OK && request != NULL) {
            answer(c->s, c->fd, request);
            freeReplyObject(request);
        }
    }
    redisReaderFree(reader);
    shutdown(c->fd, SHUT_RDWR);
    free(c);
    return NULL;
}

static void *take_connections(void *arg)
{
    struct scripted *s = arg;

    for (;;) {
        int fd = accept(s->fd, NULL, NULL);
        if (fd < 0)
            return NULL;
        struct connection *c = malloc(sizeof *c);
        *c = (struct connection){.s = s, .fd = fd};
        pthread_mutex_lock(&s->mutex);
        if (s->count == CONNECTIONS_MAX)
            abort();
        s->fds[s->count] = fd;
        pthread_create(&s->threads[s->count++], NULL, serve, c);
        pthread_mutex_unlock(&s->mutex);
    }
}

struct scripted *scripted_start(const char *info)
{
    struct scripted *s = calloc(1, sizeof *s);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;

    s->info = strdup(info);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(s->fd, (struct sockaddr *)&here, size) != 0 || listen(s->fd, 16) != 0)
        abort();
    getsockname(s->fd, (struct sockaddr *)&here, &size);
    s->port = ntohs(here.sin_port);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_create(&s->listener, NULL, take_connections, s);
    return s;
}

void scripted_restart(struct scripted *s, const char *info)
{
    pthread_mutex_lock(&s->mutex);
    free(s->info);
    s->info = strdup(info);
    for (size_t i = 0; i < s->count; i++)
        shutdown(s->fds[i], SHUT_RDWR);
    pthread_mutex_unlock(&s->mutex);
}

int scripted_port(const struct scripted *s)
{
    return s->port;
}

void scripted_answer(struct scripted *s, const char *command, const char *bytes, size_t len)
{
    pthread_mutex_lock(&s->mutex);
    free(s->answer);
    s->answer = bytes != NULL ? malloc(len + 1) : NULL;
    if (bytes != NULL)
        memcpy(s->answer, bytes, len);
    s->answer_len = len;
    snprintf(s->command, sizeof s->command, "%s", command != NULL ? command : "");
    pthread_mutex_unlock(&s->mutex);
}

size_t scripted_requests(struct scripted *s)
{
    pthread_mutex_lock(&s->mutex);
    size_t count = s->requests;
    pthread_mutex_unlock(&s->mutex);
    return count;
}

size_t scripted_sent(struct scripted *s)
{
    pthread_mutex_lock(&s->mutex);
    size_t count = s->sent;
    pthread_mutex_unlock(&s->mutex);
    return count;
}

void scripted_stop(struct scripted *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->listener, NULL);
    for (size_t i = 0; i < s->count; i++)
        shutdown(s->fds[i], SHUT_RDWR);
    for (size_t i = 0; i < s->count; i++) {
        pthread_join(s->threads[i], NULL);
        close(s->fds[i]);
    }
    close(s->fd);
    pthread_mutex_destroy(&s->mutex);
    free(s->answer);
    free(s->info);
    free(s);
}
