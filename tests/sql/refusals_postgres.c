/* See refusals.h. */
#include "lib/check.h"
#include "sql/refusals.h"

const char *const conflicts[] = {"40001", "40P01", NULL};
const struct refusal refusals[] = {
    {"53100", HF_FULL, "the server's disk is full"},
    {"57014", HF_UNAVAILABLE, "statement_timeout"},
    {"42501", HF_DENIED, "rights"},
    {0},
};
const struct refusal refused_urls[] = {
    {"postgres://postgres@%s/nowhere", HF_DENIED, "does not exist"},
    {"postgres://nobody-at-all@%s/postgres", HF_DENIED, "check user and password"},
    {"postgres://postgres@127.0.0.1:1/postgres?op_timeout=300ms&x=%s", HF_INVALID, "x"},
    {"postgres://postgres@%s/postgres?hold=tight", HF_INVALID, "lease, session or advisory"},
    {"postgres://postgres@%s/postgres?tls=maybe", HF_INVALID, "verify, insecure or off"},
    {"postgres://postgres@%s/postgres?tls=verify", HF_UNAVAILABLE, "SSL"},
    {0},
};

void refuse(struct server *s, const char *what, int times)
{
    char sql[800];

    snprintf(
        sql, sizeof sql,
        "CREATE SEQUENCE refusals; CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$"
        " BEGIN IF nextval('public.refusals') <= %d THEN RAISE EXCEPTION 'refused' USING ERRCODE = "
        "'%s';"
        " END IF; RETURN NEW; END $$; CREATE TRIGGER refuse BEFORE INSERT ON holdfast_holder"
        " FOR EACH ROW EXECUTE FUNCTION refuse()",
        times, what);
    server_run(s, sql);
}

void stop_refusing(struct server *s)
{
    server_run(
        s, "DROP TRIGGER refuse ON holdfast_holder; DROP FUNCTION refuse; DROP SEQUENCE refusals");
}

const char *const refusals_tried = "SELECT last_value FROM refusals";

#define OURS                                                               \
    "FROM pg_stat_activity WHERE datname = current_database() AND pid <> " \
    "pg_backend_pid() AND application_name LIKE 'holdfast%'"

void kill_connections(struct server *s)
{
    assert_true(server_number(s, "SELECT count(pg_terminate_backend(pid)) " OURS) > 0);
}

const char *const connections = "SELECT count(*) " OURS;
const char *const connections_by_name =
    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'holdfast: test_postgres%'";

const char *const forget_grants[] = {"DELETE FROM holdfast_holder WHERE name = 'forgotten'",
                                     "UPDATE holdfast_lock SET state = 0 WHERE name = 'forgotten'",
                                     NULL};

void make_least_account(struct server *s)
{
    server_run(s,
               "CREATE ROLE least LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_lock,"
               " holdfast_holder, holdfast_waiter, holdfast_retired, holdfast_value TO least; "
               "GRANT SELECT ON"
               " holdfast_schema, holdfast_now TO least; GRANT USAGE ON SEQUENCE holdfast_line TO"
               " least; REVOKE CREATE ON SCHEMA public FROM PUBLIC");
}

const char *const least_account = "least", *const admin_account = "postgres";
#define BID                                                                                        \
    "holdfast_attempt(bytea, bytea, boolean, bigint, bigint, bigint, bigint, boolean, text, text," \
    " text, text, bigint, text, bigint, bigint)"
const char *const revoke_routines = "REVOKE EXECUTE ON FUNCTION " BID " FROM public";
const char *const grant_routines = "GRANT EXECUTE ON FUNCTION " BID " TO public";
const char *const drop_version = "DROP FUNCTION holdfast_routines";
const char *const lower_version =
    "CREATE FUNCTION holdfast_routines() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1'";

static void c1_another_default_isolation_does_no_harm(void **state)
{
    struct refusals *f = *state;
    hf_lock *lock;

    server_run(f->admin, "CREATE DATABASE strict TEMPLATE template0");
    server_run(f->admin,
               "ALTER DATABASE strict SET default_transaction_isolation = 'serializable'");
    hf_client *client = refusals_open(f, "postgres", "strict");
    refusals_check(f, hf_setup(client, &f->err), 0);
    for (int i = 0; i < 3; i++) {
        refusals_check(f, refusals_take(f, client, "x", &lock), 0);
        refusals_check(f, hf_lock_renew(lock, &f->err), 0);
        refusals_check(f, hf_lock_release(lock, &f->err), 0);
    }
    hf_close(client);
}

/* What a full queue of notifications says to whoever calls. The lock is released all the same, and who waits finds out by
 * itself. */
static void c6_lock_is_released_although_nobody_can_be_called(void **state)
{
    struct refusals *f = *state;
    struct refusals_waiter w = {.client = f->client, .name = "mute"};
    hf_lock *lock;

    refusals_check(f, refusals_take(f, f->client, "mute", &lock), 0);
    refusals_wait(&w);
    server_await(f->admin, "SELECT count(*) FROM holdfast_waiter WHERE name = 'mute'", 1);
    server_run(
        f->admin,
        "CREATE FUNCTION full_queue() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF"
        " current_query() LIKE '%holdfast_release%' AND current_setting('holdfast.silent', true)"
        " IS DISTINCT FROM 'on' THEN RAISE EXCEPTION 'too many notifications'"
        " USING ERRCODE = '54000'; END IF; RETURN NULL; END $$; CREATE TRIGGER"
        " full_queue AFTER INSERT ON holdfast_holder FOR EACH ROW EXECUTE"
        " FUNCTION full_queue()");
    int code = hf_lock_release(lock, &f->err);
    server_run(f->admin, "DROP TRIGGER full_queue ON holdfast_holder; DROP FUNCTION full_queue");
    refusals_check(f, code, 0);
    pthread_join(w.thread, NULL);
    check_number("waiter", w.code, 0);
    refusals_check(f, hf_lock_release(w.lock, &f->err), 0);
}

/* What a client of version 2 calls, while others wait for the same lock by what is called now. */
static void clients_of_before_go_on(void **state)
{
    struct refusals *f = *state;
    struct refusals_waiter w = {.client = f->client, .name = "before"};

    check_number("version", server_number(f->admin, "SELECT holdfast_version()"), 2);
    check_number(
        "granted",
        server_number(f->admin,
                      "SELECT count(*) FROM holdfast_attempt('before', decode(repeat('ab', 16),"
                      " 'hex'), false, NULL, 20000, 0, 60000, true, NULL, 'host', 'user',"
                      " 'program', 1, 'note') WHERE verdict = 'granted' AND claimed"),
        1);
    refusals_wait(&w);
    server_await(f->admin, "SELECT count(*) FROM holdfast_waiter WHERE name = 'before'", 1);
    check_number("renewed",
                 server_number(f->admin,
                               "SELECT count(*) FROM holdfast_renew(ARRAY['before'::bytea],"
                               " ARRAY[decode(repeat('ab', 16), 'hex')], ARRAY[0::bigint])"
                               " WHERE verdict = 'granted' AND item = 1"),
                 1);
    server_run(f->admin, "SELECT holdfast_release('before', decode(repeat('ab', 16), 'hex'), 0)");
    pthread_join(w.thread, NULL);
    check_number("waiter", w.code, 0);
    refusals_check(f, hf_lock_release(w.lock, &f->err), 0);
}

const struct own_case own_cases[] = {
    {"clients_of_before_go_on", clients_of_before_go_on},
    {"c1_another_default_isolation_does_no_harm", c1_another_default_isolation_does_no_harm},
    {"c6_lock_is_released_although_nobody_can_be_called",
     c6_lock_is_released_although_nobody_can_be_called},
    {0},
};
