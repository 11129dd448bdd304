/* What SQLite keeps for the whole process, and fork().
 *
 * SQLite has mutexes and a table of locked files that belong to the process. A child of fork() gets
 * a copy: taken by threads that it does not have, with file locks that its parent owns. Therefore
 *
 *  - no thread of ours is inside SQLite when the process forks. fork() waits for the operations
 *    under way; whoever waits for another process does so outside (turn.c);
 *  - a child that opens a database closes first what it has inherited. No transaction is open in
 *    it, so nothing is written, and locks on files are not inherited, so none is lost: the child
 *    only forgets what is not its own.
 *
 * This must be known where there is no client at hand, so it is global, as what it guards is. */
#include "base/thread.h"
#include "stores/sqlite/sqlite.h"

#include "base/banned.h"

#define FORK_PATIENCE_MS 2000 /* somebody may fork inside an operation, in a callback of diagnose */

static struct {
    pthread_once_t once;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned inside;  /* threads */
    unsigned forking; /* threads that fork, or wait to: nobody enters before the last has */
    struct hf__sqlite *open, *inherited;
    bool unusable; /* the parent was inside when it forked: what is inherited cannot be closed */
} process = {.once = PTHREAD_ONCE_INIT, .mutex = PTHREAD_MUTEX_INITIALIZER};

static void before_fork(void)
{
    int64_t until_ns = hf__now_ns(&hf__system_env) + FORK_PATIENCE_MS * HF__NS_PER_MS;

    pthread_mutex_lock(&process.mutex);
    process.forking++;
    while (process.inside > 0 &&
           hf__cond_wait(&process.changed, &process.mutex, &hf__system_env, until_ns))
        continue;
}

static void after_fork_in_parent(void)
{
    process.forking--;
    pthread_cond_broadcast(&process.changed);
    pthread_mutex_unlock(&process.mutex);
}

static void after_fork_in_child(void)
{
    struct hf__sqlite **last = &process.inherited;

    while (*last != NULL) /* what its parent had inherited, and not opened anything since */
        last = &(*last)->next;
    *last = process.open;
    process.open = NULL;
    process.unusable |= process.inside > 0;
    process.inside = 0;
    process.forking = 0;
    hf__cond_init(&process.changed); /* nobody waits here */
    pthread_mutex_unlock(&process.mutex);
}

static void prepare(void)
{
    hf__cond_init(&process.changed);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void hf__sqlite_process_enter(void)
{
    pthread_once(&process.once, prepare);
    pthread_mutex_lock(&process.mutex);
    while (process.forking > 0)
        pthread_cond_wait(&process.changed, &process.mutex);
    process.inside++;
    pthread_mutex_unlock(&process.mutex);
}

void hf__sqlite_process_leave(void)
{
    pthread_mutex_lock(&process.mutex);
    if (--process.inside == 0 && process.forking > 0)
        pthread_cond_broadcast(&process.changed);
    pthread_mutex_unlock(&process.mutex);
}

int hf__sqlite_disinherit(hf_error *err)
{
    pthread_mutex_lock(&process.mutex); /* all the while: nobody opens anything before it is done */
    bool unusable = process.unusable;
    for (; !unusable && process.inherited != NULL; process.inherited = process.inherited->next) {
        hf__sqlite_disconnect(process.inherited);
        hf__writers_close(&process.inherited->writers);
    }
    pthread_mutex_unlock(&process.mutex);
    return !unusable ? 0
                     : hf__fail(err, HF_FORKED,
                                "sqlite: the process that forked this one was using a database at "
                                "that moment; exec first");
}

void hf__sqlite_enlist(struct hf__sqlite *s)
{
    pthread_mutex_lock(&process.mutex);
    s->next = process.open;
    process.open = s;
    pthread_mutex_unlock(&process.mutex);
}

void hf__sqlite_delist(struct hf__sqlite *s)
{
    struct hf__sqlite **at = &process.open;

    pthread_mutex_lock(&process.mutex);
    while (*at != NULL && *at != s)
        at = &(*at)->next;
    if (*at != NULL)
        *at = s->next;
    pthread_mutex_unlock(&process.mutex);
}
