/* See server.h. */
#include <dirent.h>
#include <signal.h>
#include <time.h>

#include "lib/check.h"
#include "sql/server.h"

void server_await(struct server *s, const char *sql, int64_t wanted)
{
    for (int i = 0; i < AWAIT_MS / 5; i++) {
        if (server_number(s, sql) == wanted)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    fail_msg("waited for %lld from %s", (long long)wanted, sql);
}

void server_await_more(struct server *s, const char *sql, int64_t than)
{
    for (int i = 0; i < AWAIT_MS / 5; i++) {
        if (server_number(s, sql) > than)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    fail_msg("waited for more than %lld from %s", (long long)than, sql);
}

static bool runs(pid_t pid, const char *thread)
{
    char path[80], state = 'T';

    snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, thread);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
            state = 'T'; /* it has just ended */
        fclose(file);
    }
    return state != 'T';
}

void server_stop_process(pid_t pid)
{
    char path[40];
    int running = 1;

    assert_int_equal(kill(pid, SIGSTOP), 0);
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    for (int i = 0; running > 0 && i < AWAIT_MS; i++) {
        DIR *threads = opendir(path);
        assert_non_null(threads);
        running = 0;
        for (struct dirent *e; (e = readdir(threads)) != NULL;)
            running += e->d_name[0] != '.' && runs(pid, e->d_name);
        closedir(threads);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    check_number("threads that run", running, 0);
}
