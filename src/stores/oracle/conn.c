/* One connection and its thread.
 *
 *      borrower                    thread
 *      fills in the job
 *      RESTS -> WORKS  ----------> does it, however long the driver takes
 *      waits                       WORKS -> RESTS, and says so
 *
 * If the deadline comes first the borrower leaves (WORKS -> LEFT): the statement is cancelled from
 * a thread of its own, because SQLCancel may block as well, and the connection's thread ends the
 * session as soon as the driver lets it go. SQL_ATTR_QUERY_TIMEOUT and SQL_ATTR_LOGIN_TIMEOUT are
 * set besides; they count whole seconds, and not every driver keeps them. */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "sql/url.h"
#include "stores/oracle/oracle.h"

#include "util/banned.h"

/* The thread --------------------------------------------------------------- */

static void forget_login(struct hf__ora_conn *c)
{
    hf__sql_forget(c->connect);
    hf__sql_forget(c->password);
    free(c->dsn);
    free(c->user);
    c->connect = c->password = c->dsn = c->user = NULL;
}

static void disown(struct hf__ora_conn *c)
{
    pthread_mutex_lock(&c->mutex);
    bool last = --c->owners == 0;
    pthread_mutex_unlock(&c->mutex);
    if (!last)
        return;
    forget_login(c);
    hf__ora_rows_clear(&c->job.rows);
    free(c->job.once);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

/* False: nobody will ask any more. */
static bool wait_for_job(struct hf__ora_conn *c)
{
    pthread_mutex_lock(&c->mutex);
    if (c->state == HF__ORA_WORKS) {
        c->state = HF__ORA_RESTS;
        pthread_cond_broadcast(&c->changed);
    }
    while (c->state == HF__ORA_RESTS)
        pthread_cond_wait(&c->changed, &c->mutex);
    bool goes_on = c->state == HF__ORA_WORKS;
    pthread_mutex_unlock(&c->mutex);
    return goes_on && c->job.task != HF__ORA_QUIT;
}

static void *thread_main(void *arg)
{
    struct hf__ora_conn *c = arg;

    do
        hf__ora_work(c);
    while (wait_for_job(c));
    c->job.task = HF__ORA_QUIT;
    hf__ora_work(c);
    pthread_mutex_lock(&c->mutex);
    c->over = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
    disown(c);
    return NULL;
}

static void *cancel_main(void *arg)
{
    struct hf__ora_conn *c = arg;

    pthread_mutex_lock(&c->mutex);
    SQLHSTMT handle = c->running;
    c->cancelling = handle != NULL;
    pthread_mutex_unlock(&c->mutex);
    if (handle != NULL)
        SQLCancel(handle); /* the handle stays as long as `cancelling` says so */
    pthread_mutex_lock(&c->mutex);
    c->cancelling = false;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
    disown(c);
    return NULL;
}

/* Signals are the program's: none is delivered to our threads. */
static int start_thread(void *(*main)(void *), struct hf__ora_conn *c)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&thread, &attr, main, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return r;
}

/* The borrower ------------------------------------------------------------- */

/* Mutex held. False: the deadline has come. */
static bool wait_until(struct hf__ora_conn *c, int64_t left_ns)
{
    struct timespec until;

    if (left_ns <= 0)
        return false;
    clock_gettime(CLOCK_MONOTONIC, &until);
    left_ns += until.tv_nsec;
    until.tv_sec += left_ns / 1000000000;
    until.tv_nsec = left_ns % 1000000000;
    pthread_cond_timedwait(&c->changed, &c->mutex, &until);
    return true;
}

static void leave(struct hf__ora_conn *c)
{
    c->owners++;
    pthread_mutex_unlock(&c->mutex);
    if (start_thread(cancel_main, c) != 0)
        disown(c); /* then the server's or the driver's own timeout ends it */
    pthread_mutex_lock(&c->mutex);
}

/* Waits for the thread until the deadline; false: it was left behind. */
static bool wait_for_thread(struct hf__ora *s, struct hf__ora_conn *c, int64_t deadline_ns)
{
    pthread_mutex_lock(&c->mutex);
    while (c->state == HF__ORA_WORKS) {
        if (wait_until(c, deadline_ns - hf__now_ns(s->base.host->env)))
            continue;
        c->state = HF__ORA_LEFT;
        c->broken = true;
        leave(c);
    }
    bool done = c->state == HF__ORA_RESTS;
    pthread_mutex_unlock(&c->mutex);
    return done;
}

static unsigned seconds(struct hf__ora *s, int64_t deadline_ns)
{
    int64_t left_s = (deadline_ns - hf__now_ns(s->base.host->env)) / 1000000000 + 1;

    return left_s < 1 ? 1 : (unsigned)left_s;
}

static int late(bool reads, hf_error *err)
{
    return hf__fail(err, reads ? HF_UNAVAILABLE : HF_UNKNOWN,
                    "oracle: the server did not answer in time");
}

/* Has the thread do what is in the job. */
static int do_job(struct hf__ora *s, struct hf__ora_conn *c, bool reads, int64_t deadline_ns,
                  hf_error *err)
{
    if (c->broken)
        return hf__fail(err, HF_UNAVAILABLE, "oracle: the connection is of no more use");
    if (c->job.too_much)
        return hf__fail(err, HF_INVALID, "oracle: too long for a statement");
    c->job.timeout_s = seconds(s, deadline_ns);
    pthread_mutex_lock(&c->mutex);
    c->state = HF__ORA_WORKS;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
    if (!wait_for_thread(s, c, deadline_ns))
        return late(reads, err);
    c->kind = HF__ORA_OTHER;
    if (SQL_SUCCEEDED(c->job.result) || c->job.result == SQL_NO_DATA)
        return 0;
    int code = hf__ora_fail(c->dialect, &c->job.trouble, reads, &c->kind, err);
    if (c->kind == HF__ORA_LOST || code == HF_UNKNOWN) {
        c->broken = true;
        atomic_store(&s->lost_ns, hf__now_ns(s->base.host->env));
    }
    return code;
}

int hf__ora_run(struct hf__ora *s, struct hf__ora_conn *c, bool reads, int64_t deadline_ns,
                hf_error *err)
{
    c->job.task = HF__ORA_RUN;
    c->dirty = true;
    return do_job(s, c, reads, deadline_ns, err);
}

int hf__ora_commit(struct hf__ora *s, struct hf__ora_conn *c, int64_t deadline_ns, hf_error *err)
{
    c->job.task = HF__ORA_COMMIT;
    int r = do_job(s, c, false, deadline_ns, err);
    if (r == 0)
        c->dirty = false;
    else
        c->broken = true;
    return r;
}

void hf__ora_rollback(struct hf__ora *s, struct hf__ora_conn *c, int64_t deadline_ns)
{
    if (!c->dirty || c->broken)
        return;
    c->job.task = HF__ORA_ROLLBACK;
    if (do_job(s, c, false, deadline_ns, NULL) == 0)
        c->dirty = false;
    else
        c->broken = true;
}

/* Beginning and end -------------------------------------------------------- */

int hf__ora_conn_new(struct hf__ora *s, struct hf__ora_conn **ret_conn, hf_error *err)
{
    struct hf__ora_conn *c = calloc(1, sizeof *c);
    const struct hf__ora_settings *set = &s->set;
    pthread_condattr_t attr;

    if (c == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &attr);
    pthread_condattr_destroy(&attr);
    c->s = s;
    c->owners = 1;
    c->dialect = set->dialect;
    int r = hf__sql_copy(set->connect, &c->connect, err);
    if (r == 0)
        r = hf__sql_copy(set->dsn, &c->dsn, err);
    if (r == 0)
        r = hf__sql_copy(set->user, &c->user, err);
    if (r == 0)
        r = hf__sql_copy(set->password, &c->password, err);
    if (r == 0)
        *ret_conn = c;
    else
        disown(c);
    return r;
}

int hf__ora_begin(struct hf__ora *s, struct hf__ora_conn *c, int64_t deadline_ns, hf_error *err)
{
    c->job.task = HF__ORA_OPEN;
    c->job.timeout_s = seconds(s, deadline_ns);
    c->state = HF__ORA_WORKS;
    c->owners = 2;
    if (start_thread(thread_main, c) != 0) {
        c->owners = 1;
        c->state = HF__ORA_LEFT;
        return hf__fail(err, HF_SYSTEM, "oracle: no thread can be started");
    }
    if (!wait_for_thread(s, c, deadline_ns))
        return late(true, err);
    if (!SQL_SUCCEEDED(c->job.result))
        return hf__ora_fail(c->dialect, &c->job.trouble, true, &c->kind, err);
    forget_login(c);
    return 0;
}

void hf__ora_end(struct hf__ora_conn *c)
{
    int64_t left_ns = HF__ORA_GOODBYE_MS * HF__NS_PER_MS;
    struct timespec from, now;

    clock_gettime(CLOCK_MONOTONIC, &from);
    pthread_mutex_lock(&c->mutex);
    if (c->state == HF__ORA_RESTS) {
        c->state = HF__ORA_LEFT;
        pthread_cond_broadcast(&c->changed);
        while (!c->over && wait_until(c, left_ns)) {
            clock_gettime(CLOCK_MONOTONIC, &now);
            left_ns = HF__ORA_GOODBYE_MS * HF__NS_PER_MS - (now.tv_sec - from.tv_sec) * 1000000000 -
                      (now.tv_nsec - from.tv_nsec);
        }
    }
    pthread_mutex_unlock(&c->mutex);
    disown(c);
}
