/* See server.h. */
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
