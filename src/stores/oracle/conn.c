/* One connection, and how nothing of it outlives its deadline.
 *
 *      borrower                        the connection's thread
 *      fills in the job, asks     ---> does it, however long the driver takes
 *      waits until the deadline        says that it is done
 *
 * If the deadline comes first the borrower leaves: the statement is cancelled from yet another
 * thread, because SQLCancel may block as well, and the thread ends the session as soon as the
 * driver lets it go. SQL_ATTR_QUERY_TIMEOUT and SQL_ATTR_LOGIN_TIMEOUT are set besides; they count
 * whole seconds, and not every driver keeps them.
 *
 * The thread is started by the first job and stays with the connection: on a busy machine a new
 * thread waits for its first turn much longer than one that is woken. Only while the client has not
 * asked for any lock it is ended with each loan, so that such a client may fork. */
#include <stdlib.h>

#include "base/bytes.h"
#include "base/secret.h"
#include "base/thread.h"
#include "sql/url.h"
#include "stores/oracle/oracle.h"

#include "base/banned.h"

/* Threads ------------------------------------------------------------------ */

static void forget_login(struct hf__ora_conn *c)
{
    hf__secret_free(c->connect);
    hf__secret_free(c->password);
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

/* False: there is none, and will be none. Mutex held. */
static bool wait_for_job(struct hf__ora_conn *c)
{
    while (!c->asked && !c->rests && !c->left)
        pthread_cond_wait(&c->changed, &c->mutex);
    bool goes_on = c->asked;
    c->asked = false;
    return goes_on;
}

static void *work_main(void *arg)
{
    struct hf__ora_conn *c = arg;

    pthread_mutex_lock(&c->mutex);
    while (wait_for_job(c)) {
        pthread_mutex_unlock(&c->mutex);
        hf__ora_work(c);
        pthread_mutex_lock(&c->mutex);
        c->done = true;
        pthread_cond_broadcast(&c->changed);
    }
    bool left = c->left;
    pthread_mutex_unlock(&c->mutex);
    if (left) {
        c->job.task = HF__ORA_TASK_QUIT;
        hf__ora_work(c);
    }
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

/* The thread owns the connection too. */
static bool start_thread(void *(*main)(void *), struct hf__ora_conn *c, pthread_t *ret_thread)
{
    pthread_mutex_lock(&c->mutex);
    c->owners++;
    pthread_mutex_unlock(&c->mutex);
    bool started = hf__thread_start(ret_thread, "hf-oracle", 0, main, c) == 0;
    if (!started)
        disown(c);
    return started;
}

/* The borrower ------------------------------------------------------------- */

/* Has the thread do the job; false: it was left behind with it. */
static bool have_done(struct hf__ora_conn *c, int64_t deadline_ns)
{
    pthread_t canceller;

    pthread_mutex_lock(&c->mutex);
    c->done = false;
    c->asked = true;
    pthread_cond_broadcast(&c->changed);
    while (!c->done && hf__cond_wait(&c->changed, &c->mutex, c->env, deadline_ns))
        continue;
    c->left = !c->done;
    pthread_mutex_unlock(&c->mutex);
    if (!c->left)
        return true;
    pthread_detach(c->thread);
    c->has_thread = false;
    c->broken = true;
    if (start_thread(cancel_main, c, &canceller)) /* else a timeout of the server's own ends it */
        pthread_detach(canceller);
    return false;
}

void hf__ora_rest(struct hf__ora_conn *c)
{
    if (!c->has_thread)
        return;
    pthread_mutex_lock(&c->mutex);
    c->rests = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
    pthread_join(c->thread, NULL);
    c->has_thread = c->rests = false;
}

static int late(bool reads, hf_error *err)
{
    return hf__fail(err, reads ? HF_UNAVAILABLE : HF_UNKNOWN,
                    "oracle: the server did not answer in time");
}

/* What is in the job, by the deadline. `reads`: it changes nothing. */
static int work(struct hf__ora_conn *c, bool reads, int64_t deadline_ns, hf_error *err)
{
    int64_t left_s = (deadline_ns - hf__now_ns(c->env)) / 1000000000 + 1;

    c->job.timeout_s = left_s < 1 ? 1 : (unsigned)left_s;
    c->kind = HF__ORA_KIND_OTHER;
    if (!c->has_thread)
        c->has_thread = start_thread(work_main, c, &c->thread);
    if (!c->has_thread)
        return hf__fail(err, HF_SYSTEM, "oracle: no thread can be started");
    if (!have_done(c, deadline_ns))
        return late(reads, err);
    if (SQL_SUCCEEDED(c->job.result) || c->job.result == SQL_NO_DATA)
        return 0;
    return hf__ora_fail(c->dialect, &c->job.trouble, reads, &c->kind, err);
}

static int do_job(struct hf__ora *s, struct hf__ora_conn *c, bool reads, int64_t deadline_ns,
                  hf_error *err)
{
    if (c->broken)
        return hf__fail(err, HF_UNAVAILABLE, "oracle: the connection is of no more use");
    if (c->job.too_much)
        return hf__fail(err, HF_INVALID, "oracle: too long for a statement");
    int r = work(c, reads, deadline_ns, err);
    if (c->kind == HF__ORA_KIND_LOST || r == HF_UNKNOWN) {
        c->broken = true;
        atomic_store(&s->lost_ns, hf__now_ns(c->env));
    }
    return r;
}

int hf__ora_run(struct hf__ora *s, struct hf__ora_conn *c, bool reads, int64_t deadline_ns,
                hf_error *err)
{
    c->job.task = HF__ORA_TASK_RUN;
    c->dirty = true;
    return do_job(s, c, reads, deadline_ns, err);
}

int hf__ora_commit(struct hf__ora *s, struct hf__ora_conn *c, int64_t deadline_ns, hf_error *err)
{
    c->job.task = HF__ORA_TASK_COMMIT;
    int r = do_job(s, c, false, deadline_ns, err);
    if (r == 0)
        c->dirty = false;
    else
        c->broken = true;
    /* Only a conflict is known to have undone it all. */
    return r != 0 && r != HF_UNKNOWN && c->kind != HF__ORA_KIND_AGAIN
               ? hf__wrap(err, HF_UNKNOWN, "commit")
               : r;
}

void hf__ora_rollback(struct hf__ora *s, struct hf__ora_conn *c, int64_t deadline_ns)
{
    if (!c->dirty || c->broken)
        return;
    c->job.task = HF__ORA_TASK_ROLLBACK;
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

    if (c == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    pthread_mutex_init(&c->mutex, NULL);
    hf__cond_init(&c->changed);
    c->s = s;
    c->env = s->base.host->env;
    c->owners = 1;
    c->dialect = set->dialect;
    int r = hf__copy_text(set->connect, &c->connect, err);
    if (r == 0)
        r = hf__copy_text(set->dsn, &c->dsn, err);
    if (r == 0)
        r = hf__copy_text(s->sql.set.account.user, &c->user, err);
    if (r == 0)
        r = hf__copy_text(s->sql.set.account.password, &c->password, err);
    if (r == 0)
        *ret_conn = c;
    else
        disown(c);
    return r;
}

int hf__ora_begin(struct hf__ora_conn *c, int64_t deadline_ns, hf_error *err)
{
    c->job.task = HF__ORA_TASK_OPEN;
    int r = work(c, true, deadline_ns, err);
    if (r == 0)
        forget_login(c);
    return r;
}

void hf__ora_end(struct hf__ora_conn *c)
{
    c->job.task = HF__ORA_TASK_QUIT;
    if (!c->left)
        work(c, true, hf__now_ns(c->env) + HF__ORA_GOODBYE_MS * HF__NS_PER_MS, NULL);
    hf__ora_rest(c);
    disown(c);
}
