/* See peer.h. */
#include "interop/peer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/check.h"

#define ANSWER_MS   20000
#define SERVERS_MAX 5

/* The child: the command of HOLDFAST_TEST_PEER, "PROGRAM SCRIPT", and host and port of the server,
 * or of each server if there are several. */
static void become_peer(int in, int out)
{
    const char *several = getenv("HOLDFAST_TEST_REDLOCK");
    char *words = strdup(getenv("HOLDFAST_TEST_PEER")),
         *servers = strdup(several != NULL ? several : getenv("HOLDFAST_TEST_REDIS"));
    char *argv[2 + 2 * SERVERS_MAX + 1] = {words, strchr(words, ' ')};
    size_t argc = 2;

    *argv[1]++ = '\0';
    for (char *at = strtok(servers, ":,"); at != NULL && argc < 2 + 2 * SERVERS_MAX;
         at = strtok(NULL, ":,"))
        argv[argc++] = at;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    execvp(words, argv);
    _exit(127);
}

void peer_start(struct peer *peer)
{
    int to[2], from[2];

    assert_non_null(getenv("HOLDFAST_TEST_PEER"));
    assert_true(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
    peer->pid = fork();
    assert_true(peer->pid >= 0);
    if (peer->pid == 0)
        become_peer(to[0], from[1]);
    close(to[0]);
    close(from[1]);
    peer->to = fdopen(to[1], "w");
    peer->from = fdopen(from[0], "r");
    assert_true(peer->to != NULL && peer->from != NULL);
    peer_says(peer, "ready");
}

void peer_kill(struct peer *peer)
{
    kill(peer->pid, SIGKILL);
    waitpid(peer->pid, NULL, 0);
    fclose(peer->to);
    fclose(peer->from);
}

static void tell(struct peer *peer, const char *format, va_list words)
{
    vfprintf(peer->to, format, words);
    fputc('\n', peer->to);
    assert_int_equal(fflush(peer->to), 0);
}

void peer_tell(struct peer *peer, const char *format, ...)
{
    va_list words;

    va_start(words, format);
    tell(peer, format, words);
    va_end(words);
}

/* It answers one line at a time, so nothing can hide in the stream's buffer. */
int64_t peer_says(struct peer *peer, const char *word)
{
    struct pollfd wait = {.fd = fileno(peer->from), .events = POLLIN};
    char line[200] = "", *time;

    if (poll(&wait, 1, ANSWER_MS) != 1 || fgets(line, sizeof line, peer->from) == NULL)
        fail_msg("the peer did not answer; '%s' was expected", word);
    line[strcspn(line, "\n")] = '\0';
    time = strchr(line, ' ');
    if (time != NULL)
        *time++ = '\0';
    check_text("the peer's answer", line, word);
    return time != NULL ? strtoll(time, NULL, 10) : 0;
}

int64_t peer_ask(struct peer *peer, const char *word, const char *format, ...)
{
    va_list words;

    va_start(words, format);
    tell(peer, format, words);
    va_end(words);
    return peer_says(peer, word);
}
