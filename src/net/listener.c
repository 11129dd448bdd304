/* See listener.h. Dialling and reading are left to the store, which alone knows its protocol; here
 * is what is the same for all of them: a connection that comes and goes under a descriptor that
 * stays.
 *
 *   not connected --- whoever asks dials ---> connected, and everybody is told to ask
 *         ^                                        |
 *         `-------- wake() reads its end ----------'
 *
 * "Everybody ask" after each new connection is what makes a lost one harmless: what was said while
 * nobody listened is not repeated by any server, so each waiter looks for itself once. */
#include "net/listener.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/backoff.h"

#include "base/banned.h"

/* Who waits has to poll while there is no connection, so dialling is not put off for long. */
#define BACKOFF_MAX_MS 500

int hf__listener_init(struct hf__listener *l, const struct hf__listener_type *type, void *owner,
                      const struct hf_env *env, hf_error *err)
{
    struct hf__ticket bits;

    *l = (struct hf__listener){
        .type = type, .env = env, .owner = owner, .epoll_fd = -1, .kick_fd = -1, .line_fd = -1};
    pthread_mutex_init(&l->mutex, NULL);
    if (env->random(env->ctx, &bits, sizeof bits) != 0)
        return hf__fail(err, HF_SYSTEM, "there is no randomness to be had");
    hf__ticket_format(&bits, l->word);
    return 0;
}

/* Closing alone would leave a line in the epoll that a forked child has too, readable for ever: an
 * epoll forgets a socket only when its last descriptor in any process is closed. */
static void unwatch(const struct hf__listener *l, int own_fd)
{
    if (own_fd < 0)
        return;
    epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, own_fd, NULL);
    close(own_fd);
}

static void close_own(struct hf__listener *l)
{
    if (l->epoll_fd >= 0)
        close(l->epoll_fd);
    if (l->kick_fd >= 0)
        close(l->kick_fd);
    l->epoll_fd = l->kick_fd = -1;
}

void hf__listener_clear(struct hf__listener *l)
{
    unwatch(l, l->line_fd);
    if (l->conn != NULL)
        l->type->hang_up(l->conn, false);
    close_own(l);
    pthread_mutex_destroy(&l->mutex);
}

/* Dialling ----------------------------------------------------------------- */

/* Dials, and adds the connection to the epoll by a descriptor of our own: unwatch() needs one that
 * is still open, and libpq closes its own as soon as it notices a loss. */
static int dial(struct hf__listener *l, int64_t deadline_ns, struct hf__line *line, int *ret_fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    int r = l->type->dial(l->owner, deadline_ns, line);

    if (r != 0)
        return r;
    int own_fd = fcntl(line->fd, F_DUPFD_CLOEXEC, 0);
    if (own_fd >= 0 && epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, own_fd, &event) == 0) {
        *ret_fd = own_fd;
        return 0;
    }
    if (own_fd >= 0)
        close(own_fd);
    l->type->hang_up(line->conn, false);
    return HF_SYSTEM;
}

/* Mutex held, released meanwhile: dialling may take seconds, and wake() must not wait for it.
 * `dialling` keeps a second thread from dialling beside us. */
static void connect_again(struct hf__listener *l, int64_t deadline_ns)
{
    struct hf__line line = {0};
    int fd = -1;

    l->dialling = true;
    pthread_mutex_unlock(&l->mutex);
    int r = dial(l, deadline_ns, &line, &fd);
    pthread_mutex_lock(&l->mutex);
    l->dialling = false;
    l->wanted = r != HF_UNSUPPORTED;
    if (r != 0) {
        l->retry_ns = hf__now_ns(l->env) + hf__backoff_ns(l->env, l->failures++, BACKOFF_MAX_MS);
        return;
    }
    l->failures = 0;
    l->conn = line.conn;
    l->line_fd = fd;
    memcpy(l->address, line.address, sizeof l->address);
    l->missed = true; /* what was said meanwhile */
    hf__listener_kick(l);
}

int hf__listener_open(struct hf__listener *l)
{
    struct epoll_event event = {.events = EPOLLIN};

    pthread_mutex_lock(&l->mutex);
    l->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    bool works = l->kick_fd >= 0 && l->epoll_fd >= 0 &&
                 epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->kick_fd, &event) == 0;
    if (!works)
        close_own(l);
    int fd = works ? l->epoll_fd : HF_SYSTEM;
    pthread_mutex_unlock(&l->mutex);
    return fd;
}

bool hf__listener_start(struct hf__listener *l, int64_t deadline_ns)
{
    pthread_mutex_lock(&l->mutex);
    connect_again(l, deadline_ns);
    l->missed = false; /* nobody could have been called before */
    pthread_mutex_unlock(&l->mutex);
    return l->wanted;
}

bool hf__listener_again(struct hf__listener *l, int64_t deadline_ns,
                        char ret_address[HF__LISTENER_ADDRESS])
{
    int64_t now_ns = hf__now_ns(l->env);

    if (!l->wanted)
        return false;
    pthread_mutex_lock(&l->mutex);
    /* The caller dials in the middle of an operation of its own, which is the more important one:
     * it goes on without wake-ups if dialling takes more than half of its time. */
    if (l->conn == NULL && !l->dialling && now_ns >= l->retry_ns)
        connect_again(l, now_ns + (deadline_ns - now_ns) / 2);
    bool listens = l->conn != NULL;
    if (listens && ret_address != NULL)
        memcpy(ret_address, l->address, sizeof l->address);
    pthread_mutex_unlock(&l->mutex);
    return listens;
}

bool hf__listener_listens(struct hf__listener *l)
{
    if (!l->wanted)
        return false;
    pthread_mutex_lock(&l->mutex);
    bool listens = l->conn != NULL;
    pthread_mutex_unlock(&l->mutex);
    return listens;
}

/* In wake() ---------------------------------------------------------------- */

void hf__listener_kick(struct hf__listener *l)
{
    l->kicked = true;
    eventfd_write(l->kick_fd, 1);
}

void *hf__listener_wake(struct hf__listener *l, bool *ret_missed)
{
    eventfd_t kicks;

    pthread_mutex_lock(&l->mutex);
    if (l->kicked) /* not asked of the kernel: most wake-ups come from the connection alone */
        eventfd_read(l->kick_fd, &kicks);
    void *conn = l->conn;
    *ret_missed = l->missed;
    l->missed = l->kicked = false;
    pthread_mutex_unlock(&l->mutex);
    return conn;
}

/* Only wake() gets here, and only wake() reads from `conn`: nobody can be in the middle of it when
 * it is hung up. */
void hf__listener_lost(struct hf__listener *l)
{
    pthread_mutex_lock(&l->mutex);
    void *conn = l->conn;
    l->conn = NULL;
    unwatch(l, l->line_fd);
    l->line_fd = -1;
    pthread_mutex_unlock(&l->mutex);
    l->type->hang_up(conn, true);
}

bool hf__call_parse(const char *text, struct hf__ticket *ret_ticket, uint64_t *ret_generation)
{
    char hex[HF_TICKET_SIZE], *end;

    if (strlen(text) < HF_TICKET_SIZE + 1)
        return false;
    memcpy(hex, text, HF_TICKET_SIZE - 1);
    hex[HF_TICKET_SIZE - 1] = '\0';
    *ret_generation = strtoumax(text + HF_TICKET_SIZE - 1, &end, 10);
    return *end == '\0' && hf__ticket_parse(hex, ret_ticket);
}
