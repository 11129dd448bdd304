/* The thing that is protected: it lets a write pass if hf_gate does, and writes down what it
 * accepted and refused. Workers speak to it over a unix socket, one message each way:
 *
 *     WHO KEY NAME MODE TOKEN SEQUENCER         ->  "ok", "stale" or "none"
 *
 * A sequencer "-" is that of a store without tokens: there is nothing to compare, so it is accepted,
 * and the history says so ("none").
 *
 * resource SOCKET HISTORY: until SIGTERM. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "holdfast.h"
#include "lab/history.h"

#define VISITORS_MAX 1024

static const char *judge(hf_gate *gate, const char *sequencer)
{
    if (strcmp(sequencer, "-") == 0)
        return "none";
    switch (hf_gate_pass(gate, sequencer, NULL)) {
    case HF_OK:
        return "ok";
    case HF_STALE:
        return "stale";
    default:
        return "error";
    }
}

/* False: the visitor has left. */
static int serve(int fd, hf_gate *gate, int history)
{
    char text[HF_SEQUENCER_MAX + 1024], who[64], key[64], name[128], mode[4];
    char sequencer[HF_SEQUENCER_MAX];
    unsigned long long token;
    ssize_t n = recv(fd, text, sizeof text - 1, 0);

    if (n <= 0)
        return 0;
    text[n] = '\0';
    if (sscanf(text, "%63s %63s %127s %3s %llu %2047s", who, key, name, mode, &token, sequencer) !=
        6)
        return 0;
    const char *answer = judge(gate, sequencer);
    history_add(history, history_now_ns(), who, "write",
                ",\"k\":\"%s\",\"n\":\"%s\",\"m\":\"%s\",\"token\":%llu,\"answer\":\"%s\"", key,
                name, mode, token, answer);
    return send(fd, answer, strlen(answer), MSG_NOSIGNAL) > 0;
}

int main(int argc, char **argv)
{
    static struct pollfd fds[VISITORS_MAX + 1];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    hf_gate *gate;

    if (argc != 3 || strlen(argv[1]) >= sizeof at.sun_path)
        return fputs("usage: resource SOCKET HISTORY\n", stderr), 64;
    memcpy(at.sun_path, argv[1], strlen(argv[1]) + 1);
    int history = history_open(argv[2]);
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (history < 0 || hf_gate_new(&gate) != HF_OK ||
        bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, VISITORS_MAX) < 0)
        return perror(argv[1]), 71;
    for (size_t i = 1; i <= VISITORS_MAX; i++)
        fds[i].fd = -1;
    fds[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (;;) {
        poll(fds, VISITORS_MAX + 1, -1);
        for (size_t i = 1; i <= VISITORS_MAX; i++) {
            if (fds[i].fd >= 0 && fds[i].revents != 0 && !serve(fds[i].fd, gate, history)) {
                close(fds[i].fd);
                fds[i].fd = -1;
            } else if (fds[i].fd < 0 && (fds[0].revents & POLLIN) != 0) {
                fds[i] = (struct pollfd){.fd = accept(listener, NULL, NULL), .events = POLLIN};
                fds[0].revents = 0;
            }
        }
    }
}
