/* Records by SQLite's own trace hook, which an automatic extension puts on every new connection. */
#include "tape.h"

#include <pthread.h>
#include <string.h>

#include "bench.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct tape *current;
static sqlite3 *recorded; /* the connection opened last */

static void append(struct tape *tape, char *sql)
{
    char **grown = realloc(tape->sql, (tape->count + 1) * sizeof *grown);

    BENCH_MUST(sql != NULL && grown != NULL, "out of memory");
    tape->sql = grown;
    tape->sql[tape->count++] = sql;
}

static int on_statement(unsigned kind, void *ctx, void *statement, void *text)
{
    (void)kind, (void)ctx;
    if (strncmp(text, "--", 2) == 0) /* a statement inside a trigger */
        return 0;
    pthread_mutex_lock(&mutex);
    if (current != NULL)
        append(current, sqlite3_expanded_sql(statement));
    pthread_mutex_unlock(&mutex);
    return 0;
}

static int on_connection(sqlite3 *db, char **ret_error, const void *api)
{
    (void)ret_error, (void)api;
    recorded = db;
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

static int on_value(void *ctx, int columns, char **values, char **names)
{
    (void)columns, (void)names;
    append(ctx, sqlite3_mprintf("PRAGMA wal_autocheckpoint = %s", values[0]));
    return 0;
}

void tape_learn(const char *url, struct learnt *learnt)
{
    hf_client *client;
    hf_error err;

    BENCH_MUST(hf_open(url, NULL, &client, &err) == HF_OK, "%s", err.text);
    bench_pair(client);
    hf_close(client);

    sqlite3_auto_extension((void (*)(void))on_connection);
    record_on(&learnt->opening);
    BENCH_MUST(hf_open(url, NULL, &client, &err) == HF_OK, "%s", err.text);
    record_on(NULL);
    bench_pair(client); /* the first one of a client may do more than those after it */
    record_on(&learnt->pair[0]);
    bench_pair(client);
    record_on(&learnt->pair[1]);
    bench_pair(client);
    record_on(NULL);
    /* How often it checkpoints may be set by a call, which leaves no trace, and differently for a
     * client that stays. */
    for (int i = 0; i < 2000; i++)
        bench_pair(client);
    sqlite3_exec(recorded, "PRAGMA wal_autocheckpoint", on_value, &learnt->opening, NULL);
    sqlite3_cancel_auto_extension(
        (void (*)(void))on_connection); /* no hook slows what is measured */
    hf_close(client);
    BENCH_MUST(learnt->pair[0].count == learnt->pair[1].count, "the two pairs differ");
}

static void must_work(struct player *player, int code, const char *sql)
{
    BENCH_MUST(code == SQLITE_OK || code == SQLITE_DONE, "%s: %s", sql, sqlite3_errmsg(player->db));
}

static void prepare(struct player *player, sqlite3_stmt **statements, const struct tape *tape)
{
    for (size_t i = 0; i < tape->count; i++)
        must_work(player,
                  sqlite3_prepare_v3(player->db, tape->sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                     &statements[i], NULL),
                  tape->sql[i]);
}

void player_open(struct player *player, const char *path, const struct learnt *learnt)
{
    const struct tape *opening = &learnt->opening;

    player->count = learnt->pair[0].count;
    player->statements = calloc(2 * player->count, sizeof *player->statements);
    BENCH_MUST(player->statements != NULL, "out of memory");
    must_work(player,
              sqlite3_open_v2(path, &player->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL),
              path);
    sqlite3_busy_timeout(player->db, 10000);
    for (size_t i = 0; i < opening->count; i++)
        must_work(player, sqlite3_exec(player->db, opening->sql[i], NULL, NULL, NULL),
                  opening->sql[i]);
    prepare(player, player->statements, &learnt->pair[0]);
    prepare(player, player->statements + player->count, &learnt->pair[1]);
}

void player_play(struct player *player, int which)
{
    sqlite3_stmt **statements = player->statements + (which ? player->count : 0);

    for (size_t i = 0; i < player->count; i++) {
        int code;
        do
            code = sqlite3_step(statements[i]);
        while (code == SQLITE_ROW);
        must_work(player, code, sqlite3_sql(statements[i]));
        sqlite3_reset(statements[i]);
    }
}

void player_close(struct player *player)
{
    for (size_t i = 0; i < 2 * player->count; i++)
        sqlite3_finalize(player->statements[i]);
    free(player->statements);
    sqlite3_close(player->db);
}
