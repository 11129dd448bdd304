/* Records by SQLite's own trace hook, which an automatic extension puts on every new connection. */
#include "tape.h"

#include <pthread.h>
#include <string.h>

#include "bench.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct tape *current;

static int on_statement(unsigned kind, void *ctx, void *statement, void *text)
{
    (void)kind, (void)ctx;
    if (strncmp(text, "--", 2) == 0) /* a statement inside a trigger */
        return 0;
    pthread_mutex_lock(&mutex);
    if (current != NULL) {
        char *sql = sqlite3_expanded_sql(statement);
        char **grown = realloc(current->sql, (current->count + 1) * sizeof *grown);
        BENCH_MUST(sql != NULL && grown != NULL, "out of memory");
        current->sql = grown;
        current->sql[current->count++] = sql;
    }
    pthread_mutex_unlock(&mutex);
    return 0;
}

static int on_connection(sqlite3 *db, char **ret_error, const void *api)
{
    (void)ret_error, (void)api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, on_statement, NULL);
}

static void record_on(struct tape *tape)
{
    pthread_mutex_lock(&mutex);
    current = tape;
    pthread_mutex_unlock(&mutex);
}

void bench_pair(hf_client *client)
{
    hf_lock *lock;
    hf_error err;
    BENCH_MUST(hf_acquire(client, "bench", HF_NTS, NULL, &lock, &err) == HF_OK, "%s", err.text);
    BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
}

void tape_learn(const char *url, struct tape *opening, struct tape *pair)
{
    hf_client *client;
    hf_error err;

    BENCH_MUST(hf_open(url, NULL, &client, &err) == HF_OK, "%s", err.text);
    bench_pair(client);
    hf_close(client);

    sqlite3_auto_extension((void (*)(void))on_connection);
    record_on(opening);
    BENCH_MUST(hf_open(url, NULL, &client, &err) == HF_OK, "%s", err.text);
    bench_pair(client); /* whatever is only run by the first one belongs to the opening */
    record_on(pair);
    bench_pair(client);
    record_on(NULL);
    sqlite3_cancel_auto_extension(
        (void (*)(void))on_connection); /* no hook slows what is measured */
    hf_close(client);
}

static void must_work(struct player *player, int code, const char *sql)
{
    BENCH_MUST(code == SQLITE_OK || code == SQLITE_DONE, "%s: %s", sql, sqlite3_errmsg(player->db));
}

void player_open(struct player *player, const char *path, const struct tape *opening,
                 const struct tape *body)
{
    must_work(player,
              sqlite3_open_v2(path, &player->db,
                              SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                              NULL),
              path);
    sqlite3_busy_timeout(player->db, 10000);
    for (size_t i = 0; i < opening->count; i++)
        must_work(player, sqlite3_exec(player->db, opening->sql[i], NULL, NULL, NULL),
                  opening->sql[i]);
    player->count = body->count;
    player->statements = calloc(body->count, sizeof(sqlite3_stmt *));
    BENCH_MUST(player->statements != NULL, "out of memory");
    for (size_t i = 0; i < body->count; i++)
        must_work(player,
                  sqlite3_prepare_v3(player->db, body->sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                     &player->statements[i], NULL),
                  body->sql[i]);
}

void player_play(struct player *player)
{
    for (size_t i = 0; i < player->count; i++) {
        sqlite3_stmt *statement = player->statements[i];
        int code;
        do
            code = sqlite3_step(statement);
        while (code == SQLITE_ROW);
        must_work(player, code, sqlite3_sql(statement));
        sqlite3_reset(statement);
    }
}

void player_close(struct player *player)
{
    for (size_t i = 0; i < player->count; i++)
        sqlite3_finalize(player->statements[i]);
    free(player->statements);
    sqlite3_close(player->db);
}
