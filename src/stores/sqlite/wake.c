/* Push: one unix datagram socket per client, named by 128 random bits in <database>.wake/, a
 * directory of mode 0700 (2770 with a group). A waiter's row carries the name; whoever lets it in
 * sends ticket and generation after the commit. Nothing here can fail an operation: a call that
 * does not arrive costs time only.
 *
 * A socket holds few datagrams (net.unix.max_dgram_qlen and one, by default eleven), whatever their
 * size. So all calls of one commit to one client share a datagram; and whoever finds so many unread
 * that another may have been turned away has everybody ask.
 *
 * A socket's address holds 107 bytes. Longer paths go through /proc/self/fd/<directory>/<name>. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "stores/sqlite/sqlite.h"

#include "base/banned.h"

#define CALL_SIZE 24 /* ticket, generation (little-endian) */
#define CALLS_MAX 160
#define BACKLOG   10 /* the kernel's default */
#define NAME_SIZE (2 * HF__SQLITE_WAKE_SIZE + 1)

void hf__sqlite_wake_init(struct hf__sqlite *s)
{
    s->wake.dir = s->wake.in = s->wake.out = -1;
}

static void format_name(const unsigned char *wake, char name[NAME_SIZE])
{
    struct hf__ticket bits;

    memcpy(bits.bits, wake, sizeof bits.bits);
    hf__ticket_format(&bits, name);
}

/* Only a directory that nobody else can look into is good enough. */
static bool is_ours_alone(const struct hf__sqlite *s, const struct stat *st)
{
    return S_ISDIR(st->st_mode) && hf__rights_of_directory(&s->rights, st) == NULL &&
           (s->rights.by_group || (st->st_uid == geteuid() && (st->st_mode & 077) == 0));
}

bool hf__sqlite_wake_barred(const struct hf__sqlite *s)
{
    struct stat st;
    char path[4200];

    snprintf(path, sizeof path, "%s.wake", s->path);
    return lstat(path, &st) == 0 && !is_ours_alone(s, &st);
}

static bool open_directory(struct hf__sqlite *s, bool create)
{
    struct stat st;
    char path[4200];

    if (s->wake.dir >= 0)
        return true;
    snprintf(path, sizeof path, "%s.wake", s->path);
    bool made = create && mkdir(path, 0700) == 0;
    if (made && s->rights.by_group && /* the group comes from the directory above */
        chmod(path, s->rights.directory) != 0)
        return false;
    if (create && !made && errno != EEXIST)
        return false;
    int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(fd, &st) != 0 || !is_ours_alone(s, &st)) {
        close(fd);
        return false;
    }
    s->wake.dir = fd;
    return true;
}

static socklen_t make_address(const struct hf__sqlite *s, const char *name,
                              struct sockaddr_un *address)
{
    int len = snprintf(address->sun_path, sizeof address->sun_path, "%s.wake/%s", s->path, name);

    address->sun_family = AF_UNIX;
    if (len < 0 || (size_t)len >= sizeof address->sun_path)
        snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%.32s", s->wake.dir,
                 name);
    return sizeof *address;
}

static int bind_socket(struct hf__sqlite *s)
{
    struct sockaddr_un address = {0};
    const struct hf_env *env = s->base.host->env;
    char name[NAME_SIZE];
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if (env->random(env->ctx, s->wake.name, sizeof s->wake.name) == 0) {
        format_name(s->wake.name, name);
        socklen_t len = make_address(s, name, &address);
        if (bind(fd, (struct sockaddr *)&address, len) == 0 &&
            (!s->rights.by_group || fchmodat(s->wake.dir, name, s->rights.file, 0) == 0))
            return fd;
    }
    close(fd);
    return -1;
}

static unsigned read_backlog(void)
{
    char text[16] = "";
    int fd = open("/proc/sys/net/unix/max_dgram_qlen", O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && read(fd, text, sizeof text - 1) < 0)
        text[0] = '\0';
    if (fd >= 0)
        close(fd);
    unsigned long backlog = strtoul(text, NULL, 10);
    return backlog > 0 && backlog < 1000000 ? (unsigned)backlog : BACKLOG;
}

int hf__sqlite_wake_fd(struct hf__store *store)
{
    struct hf__sqlite *s = (struct hf__sqlite *)store;
    const struct hf__host *host = s->base.host;
    int fd;

    int64_t deadline_ns = hf__now_ns(host->env) + host->op_timeout_ms * HF__NS_PER_MS;
    if (hf__sqlite_enter(s, HF__SQLITE_RANK_ASKS, deadline_ns, NULL) != 0)
        return -1;
    errno = 0;
    if (!s->wake.asked && open_directory(s, true)) {
        s->wake.backlog = read_backlog();
        errno = 0;
        s->wake.in = bind_socket(s);
    }
    bool again = s->wake.in < 0 && (errno == EMFILE || errno == ENFILE);
    s->wake.asked = !again;
    fd = again ? HF_SYSTEM : s->wake.in;
    hf__sqlite_leave(s);
    return fd;
}

void hf__sqlite_wake_clear(struct hf__sqlite *s)
{
    char name[NAME_SIZE];

    if (s->wake.in >= 0) {
        format_name(s->wake.name, name);
        unlinkat(s->wake.dir, name, 0);
        close(s->wake.in);
    }
    if (s->wake.out >= 0)
        close(s->wake.out);
    if (s->wake.dir >= 0)
        close(s->wake.dir);
    hf__sqlite_wake_init(s);
}

/* Receiving ---------------------------------------------------------------- */

static void pass_on(const unsigned char *message, size_t size, hf__wake_sink *sink, void *ctx)
{
    for (; size >= CALL_SIZE; message += CALL_SIZE, size -= CALL_SIZE) {
        struct hf__ticket ticket;
        uint64_t generation = 0;
        memcpy(ticket.bits, message, sizeof ticket.bits);
        for (int k = 7; k >= 0; k--)
            generation = generation << 8 | message[16 + k];
        sink(ctx, &ticket, generation);
    }
}

void hf__sqlite_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct hf__sqlite *s = (struct hf__sqlite *)store;
    unsigned char message[CALL_SIZE * CALLS_MAX + 1];

    for (int i = 0; i < 256; i++) { /* whoever listens has other things to do as well */
        ssize_t n = recv(s->wake.in, message, sizeof message, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            if (s->wake.unread > s->wake.backlog)
                sink(ctx, NULL, 0);
            s->wake.unread = 0;
            return;
        }
        s->wake.unread++;
        if (n % CALL_SIZE == 0)
            pass_on(message, (size_t)n, sink, ctx);
    }
}

/* Sending ------------------------------------------------------------------ */

static bool is_socket(const struct hf__sqlite *s, const char *name)
{
    struct stat st;

    return fstatat(s->wake.dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode);
}

/* One datagram to one client. */
static void send_calls(struct hf__sqlite *s, const struct hf__sqlite_call *calls, size_t count)
{
    struct sockaddr_un address = {0};
    unsigned char message[CALL_SIZE * CALLS_MAX];
    char name[NAME_SIZE];
    ssize_t n = -1;

    for (size_t i = 0; i < count; i++) {
        unsigned char *at = message + i * CALL_SIZE;
        memcpy(at, calls[i].ticket.bits, sizeof calls[i].ticket.bits);
        for (int k = 0; k < 8; k++)
            at[16 + k] = (unsigned char)(calls[i].generation >> (8 * k));
    }
    format_name(calls[0].wake, name);
    socklen_t len = make_address(s, name, &address);
    errno = 0;
    for (int tries = 0; tries < 2; tries++) {
        if (s->wake.out < 0)
            s->wake.out = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (s->wake.out < 0)
            break;
        n = sendto(s->wake.out, message, count * CALL_SIZE, MSG_DONTWAIT | MSG_NOSIGNAL,
                   (struct sockaddr *)&address, len);
        if (n >= 0 || errno != EAGAIN)
            break;
        /* It is full, or ours is: with what others have not read yet. So from a new one. */
        close(s->wake.out);
        s->wake.out = -1;
    }
    /* Names are never used twice: a socket that nobody listens to belongs to a client that died. */
    if (n < 0 && errno == ECONNREFUSED && is_socket(s, name))
        unlinkat(s->wake.dir, name, 0);
}

static int compare_calls(const void *a, const void *b)
{
    const struct hf__sqlite_call *x = a, *y = b;

    return memcmp(x->wake, y->wake, sizeof x->wake);
}

/* Sorted by client, so that those to one client stand together: one datagram a grant filled the
 * socket, and of 100 readers behind a writer 89 were not called. */
void hf__sqlite_tell(struct hf__sqlite *s)
{
    if (s->call_count == 0)
        return;
    if (open_directory(s, false)) {
        qsort(s->calls, s->call_count, sizeof *s->calls, compare_calls);
        for (size_t i = 0, n; i < s->call_count; i += n) {
            for (n = 1; n < CALLS_MAX && i + n < s->call_count; n++) {
                if (compare_calls(&s->calls[i], &s->calls[i + n]) != 0)
                    break;
            }
            send_calls(s, &s->calls[i], n);
        }
    }
    s->call_count = 0;
}

/* Cleaning up -------------------------------------------------------------- */

static bool is_stale(struct hf__sqlite *s, const char *name)
{
    struct sockaddr_un address = {0};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool refused;

    if (fd < 0)
        return false;
    socklen_t len = make_address(s, name, &address);
    refused = connect(fd, (struct sockaddr *)&address, len) != 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

size_t hf__sqlite_stale_sockets(struct hf__sqlite *s, bool remove)
{
    struct hf__ticket ignored;
    struct dirent *entry;
    size_t count = 0;

    if (!open_directory(s, false))
        return 0;
    int fd = openat(s->wake.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    if (listing == NULL) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    while ((entry = readdir(listing)) != NULL) {
        if (!hf__ticket_parse(entry->d_name, &ignored) || !is_socket(s, entry->d_name) ||
            !is_stale(s, entry->d_name))
            continue;
        count++;
        if (remove)
            unlinkat(s->wake.dir, entry->d_name, 0);
    }
    closedir(listing);
    return count;
}
