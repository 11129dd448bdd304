/* How a session begins, and the pool of them. */
#include <stdio.h>
#include <stdlib.h>

#include "stores/oracle/oracle.h"

#include "base/banned.h"

static int know_dialect(struct hf__ora_conn *c, hf_error *err)
{
    if (c->dialect == NULL)
        c->dialect = hf__ora_dialect_of(c->link.dbms);
    if (c->dialect != NULL)
        return 0;
    return hf__fail(err, HF_DENIED,
                    "oracle: the driver says that this is '%s'; if it takes Oracle's SQL, say which"
                    " dialect (dialect=oracle or mariadb)",
                    c->link.dbms);
}

static int run_text(struct hf__ora *s, struct hf__ora_conn *c, const char *const parts[3],
                    int64_t deadline_ns, hf_error *err)
{
    size_t size = strlen(parts[0]) + strlen(parts[1]) + strlen(parts[2]) + 1;
    char *sql = malloc(size);

    if (sql == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    snprintf(sql, size, "%s%s%s", parts[0], parts[1], parts[2]);
    hf__ora_start_once(c, sql);
    return hf__ora_run(s, c, true, deadline_ns, err);
}

/* A DBA who looks at V$SESSION knows whom to ask. If that may not be said it is not said. */
static void introduce(struct hf__ora *s, struct hf__ora_conn *c, int64_t deadline_ns)
{
    const char *from = s->base.host->self->program;
    char name[33] = "";

    if (c->dialect->introduce[0] == NULL)
        return;
    for (size_t i = 0; i + 1 < sizeof name && from[i] != '\0'; i++)
        name[i] =
            strchr("'?;{}", from[i]) == NULL && from[i] > ' ' && from[i] <= '~' ? from[i] : '_';
    const char *const parts[3] = {c->dialect->introduce[0], name, c->dialect->introduce[1]};
    run_text(s, c, parts, deadline_ns, NULL);
}

static int begin_session(struct hf__ora *s, struct hf__ora_conn *c, int64_t deadline_ns,
                         hf_error *err)
{
    int r = know_dialect(c, err);

    for (size_t i = 0; r == 0 && c->dialect->session[i] != NULL; i++) {
        const char *const parts[3] = {c->dialect->session[i], "", ""};
        r = run_text(s, c, parts, deadline_ns, err);
    }
    if (r == 0 && s->set.schema != NULL) {
        const char *const parts[3] = {c->dialect->use_schema, s->set.schema, ""};
        r = run_text(s, c, parts, deadline_ns, err);
    }
    if (r == 0)
        introduce(s, c, deadline_ns);
    return r == 0 && c->broken ? hf__fail(err, HF_UNAVAILABLE, "oracle: lost at once") : r;
}

static void hang_up(struct hf__pooled *pooled)
{
    hf__ora_end((struct hf__ora_conn *)pooled);
}

static int dial(void *owner, size_t host, int64_t deadline_ns, struct hf__pooled **ret_conn,
                hf_error *err)
{
    struct hf__ora *s = owner;
    struct hf__ora_conn *c = NULL;
    int r = hf__ora_conn_new(s, &c, err);

    (void)host; /* the DSN names them */
    if (r != 0)
        return r;
    r = hf__ora_begin(c, deadline_ns, err);
    if (r == 0)
        r = begin_session(s, c, deadline_ns, err);
    if (r == 0)
        *ret_conn = &c->pooled;
    else
        hang_up(&c->pooled);
    return r;
}

/* A driver's own opinion (SQL_ATTR_CONNECTION_DEAD) is old or costs a round trip. But if one
 * session was lost, those that have been idle since may be as well. */
static bool is_alive(void *owner, struct hf__pooled *pooled, int64_t idle_ns, int64_t deadline_ns)
{
    struct hf__ora *s = owner;

    (void)idle_ns, (void)deadline_ns;
    return pooled->idle_since_ns > atomic_load(&s->lost_ns);
}

const struct hf__pool_type hf__ora_pool_type = {
    .store = "oracle", .dial = dial, .hang_up = hang_up, .is_alive = is_alive};

int hf__ora_borrow(struct hf__ora *s, int64_t deadline_ns, struct hf__ora_conn **ret_conn,
                   hf_error *err)
{
    struct hf__pooled *pooled = NULL;
    int r = hf__pool_take(&s->sql.pool, deadline_ns, &pooled, err);

    if (r == 0)
        *ret_conn = (struct hf__ora_conn *)pooled;
    return r;
}

void hf__ora_give_back(void *store, void *conn)
{
    struct hf__ora *s = store;
    struct hf__ora_conn *c = conn;

    hf__ora_rollback(s, c, hf__now_ns(s->base.host->env) + HF__ORA_GOODBYE_MS * HF__NS_PER_MS);
    if (!atomic_load(&s->locks))
        hf__ora_rest(c);
    hf__pool_give(&s->sql.pool, &c->pooled, !c->broken);
}
