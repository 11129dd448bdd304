#!/bin/sh
# What needs the server itself to be changed: killed and started again, behind a pooler, with TLS and
# passwords, with a proxy that loses a reply. One line a rule, "ok" or "FAIL".
here=$(cd -P -- "$(dirname -- "$0")" && pwd) || exit 69
# shellcheck source=tests/fleet/fleet.sh
. "$here/../fleet/fleet.sh"
# shellcheck source=tests/fleet/postgres.sh
. "$here/../fleet/postgres.sh"
# shellcheck source=tests/fleet/rules.sh
. "$here/../fleet/rules.sh"

fleet_postgres postgres
url=postgres://postgres@127.0.0.1:$pg_port/postgres

check "setup creates the schema" hf setup -u "$url"
check "setup once more does no harm" hf setup -u "$url"
check "setup prints the schema" sh -c '"$HOLDFAST" setup --print -u "$1" | grep -q "FUNCTION public.holdfast_attempt"' - "$url"
check "a command runs under the lock" hf run -u "$url" job -- true
check "the socket works" hf run -u "postgres://postgres@/postgres?socket=$pg_dir&port=$pg_port" job -- true
check "doctor finds no problem" hf doctor -u "$url"
check "doctor says what removes names that nobody uses" shows 'holdfast gc' hf doctor -u "$url"
check "a session's lock ends with its connection" shows 'with its connection' \
    hf run -u "$url?hold=session" job -- "$HOLDFAST" show job

# C1: whoever uses the database uses the same tables, whatever schemas it looks into first.
app=postgres://app@127.0.0.1:$pg_port/postgres
fleet_psql -d postgres -c "CREATE ROLE app LOGIN" -c "CREATE SCHEMA app AUTHORIZATION app"
check "a role without rights is told" says 'holdfast setup --print' hf run -u "$app" job -- true
check "setup does not make tables beside those that are there" says 'holdfast setup --print' hf setup -u "$app"
check "and nothing was made for it" test -z "$(fleet_psql -d postgres -At -c "SELECT relname FROM pg_class WHERE relnamespace = 'app'::regnamespace")"
check "a schema that is named gets tables of its own" hf setup -u "$app?schema=app"
fleet_psql -d postgres -c "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO app" \
    -c "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO app"
check "setup by a role that may use what is there is well" hf setup -u "$app"
beside() { # OURS THEIRS [PGOPTIONS]: theirs is tried while ours holds it
    hf run -u "$1" excl -- env -u HOLDFAST_HELD PGOPTIONS="${3-}" "$HOLDFAST" run -u "$2" -n excl -- true
}
for way in hold=lease hold=session hold=advisory; do
    check "c1_a_role_with_a_schema_of_its_own_is_excluded: $way" says 'somebody else holds it' \
        beside "$url?$way" "$app?$way"
    check "c1_PGOPTIONS_do_not_change_that: $way" says 'somebody else holds it' \
        beside "$url?$way" "$app?$way" '-c search_path=app,public'
done
check "locks of another schema are others" beside "$url" "$app?schema=app"
check "doctor names the schema" shows 'schema public' hf doctor -u "$app"
check "doctor warns of another" shows 'also in schema app' hf doctor -u "$app"
check "a schema without tables is told" says 'not in schema other' hf run -u "$url?schema=other" job -- true
check "a schema with a quote is refused" says 'schema' hf ls -u "$url?schema=a%22b"
check "setup makes the schema as well" hf setup -u "$url?schema=Odd%20one"
check "and its locks work" hf run -u "$url?schema=Odd%20one" job -- true
fleet_psql -d postgres -c "CREATE DATABASE printed"
fleet_psql -d printed -c "REVOKE CREATE ON SCHEMA public FROM PUBLIC" # as it is from version 15 on
printed=postgres://postgres@127.0.0.1:$pg_port/printed
bare=postgres://app@127.0.0.1:$pg_port/printed
check "a role that may not create tables is told what to grant" says 'GRANT CREATE ON SCHEMA "public" TO "app"' hf setup -u "$bare"
check "a role that may not make a schema is told what to grant" says 'GRANT CREATE ON DATABASE "printed" TO "app"' hf setup -u "$bare?schema=own"
hf setup --print -u "$url?schema=Locks" >"$fleet_dir/printed.sql"
check "what setup prints is for that schema" fleet_psql -d printed -f "$fleet_dir/printed.sql" -o /dev/null
for way in hold=lease hold=session hold=advisory; do
    check "and works: $way" hf run -u "$printed?schema=Locks&$way" job -- true
done
check "ls of that schema" hf ls -u "$printed?schema=Locks"
check "gc of that schema" hf gc -u "$printed?schema=Locks"
check "tables in another schema are told" says 'schema=Locks' hf run -u "$printed" job -- true
check "and setup does not make a second set beside them" says 'schema=Locks' hf setup -u "$printed"
check "unless the schema is named" hf setup -u "$printed?schema=public"

# Whoever may create functions and operators in a schema that others look into catches nobody.
fleet_psql -d postgres -f "$here/traps.sql"
export PGOPTIONS='-c search_path=trap,public'
check "the traps work" says 'trapped' "$pg_tools/psql" -X -h 127.0.0.1 -p "$pg_port" -U postgres -c "SELECT 1::bigint * interval '1 ms'"
ticket_of() {
    hf lock -u "$1" --json --ttl 20s "$2" | sed 's/.*"ticket":"\([0-9a-f]*\)".*/\1/'
}
for way in hold=lease hold=session hold=advisory; do
    check "not trapped: $way" hf run -u "$url?$way" trap -- "$HOLDFAST" show -u "$url?$way" trap
    check "not trapped while it waits: $way" says 'not obtained in time' hf run -u "$url?$way" trap -- \
        env -u HOLDFAST_HELD "$HOLDFAST" run -u "$url?$way" -w 200ms trap -- true
    check "not trapped, a reader: $way" hf run -s -u "$url?$way" trap -- true
    check "not trapped, gc: $way" hf gc --retain 1ms -u "$url?$way"
    check "not trapped, doctor: $way" hf doctor -u "$url?$way"
done
check "not trapped, renew" hf renew -u "$url" --ticket "$(ticket_of "$url" renewed)" renewed
check "not trapped, break" hf break -u "$url" --now --ticket "$(ticket_of "$url" broken)" broken
check "not trapped, unlock" hf unlock -u "$url" --ticket "$(ticket_of "$url" unlocked)" unlocked
check "not trapped, setup" hf setup -u "$url"
unset PGOPTIONS

# Tables and functions of version 2, and a lock that is held meanwhile.
hf lock -u "$url" --never-expires kept >/dev/null
fleet_psql -d postgres -c "ALTER TABLE holdfast_holder DROP COLUMN flags" -c "ALTER TABLE holdfast_waiter DROP COLUMN flags" \
    -c "DROP TABLE holdfast_value" -c "DROP FUNCTION public.holdfast_routines"
check "functions of an older holdfast are not used" says 'holdfast setup --print' hf run -u "$url" -n job -- true
check "doctor says so too" says 'of an older holdfast' hf doctor -u "$url"
check "setup brings them up to date" hf setup -u "$url"
check "and they are used" shows 'one round trip an operation' hf doctor -u "$url"
check "c1_what was held is still held" says 'somebody else holds it' hf run -u "$url" -n kept -- true
check "c15_and there is a place for a value" test \
    "$(fleet_psql -d postgres -At -c "SELECT verdict, bytes IS NULL FROM holdfast_read('kept', '', 0)")" = 'done|t'

# C3, C4: the server is killed with -9 and started again.
first=$(hf lock -u "$url" --json --never-expires crash | sed 's/.*"generation":"\([0-9]*\)".*/\1/')
advisory_token() {
    hf run -u "$url?hold=advisory" crash -- sh -c 'echo "$HOLDFAST_TOKEN"'
}
first_advisory=$(advisory_token)
version=$(fleet_psql -d postgres -At -c "SHOW server_version_num")
[ "$version" -lt 170000 ] || fleet_psql -d postgres -c "ALTER SYSTEM SET max_notify_queue_pages = 64" # for later
kill -9 "$pg_pid"
wait "$pg_pid" 2>/dev/null
check "a server that is gone is told" says 'postgres' hf run -u "$url?op_timeout=300ms" crash -- true
fleet_until sh -c '! kill -0 "$(head -1 "$1/data/postmaster.pid")"' - "$pg_dir"
fleet_start_postgres
check "c3_never_expiring_lock_survives_a_crash" says 'somebody else holds it' hf lock -u "$url" -n --ttl 5s crash
ticket=$(hf show -u "$url" --json crash | sed -n 's/.*"ticket":"\([0-9a-f]*\)".*/\1/p' | head -1)
check "it is broken by its ticket" hf break -u "$url" --now --ticket "$ticket" crash
second=$(hf lock -u "$url" --json --ttl 5s crash | sed 's/.*"generation":"\([0-9]*\)".*/\1/')
check "c4_generation_rises_over_a_crash" test "$second" -gt "$first"
if [ "$version" -ge 150000 ]; then
    check "c4_an_unlogged_token_begins_anew_after_a_crash" test -z \
        "$(fleet_psql -d postgres -At -c "SELECT pg_sequence_last_value('holdfast_token')")"
fi
second_advisory=$(advisory_token)
check "c4_and_rises_all_the_same" test "$second_advisory" -gt "$first_advisory"
check "c4_and_once_more" test "$(advisory_token)" -gt "$second_advisory"

# A full queue of notifications keeps nobody from releasing: somebody listens, and does not take what he is sent. Before
# version 17 it takes 8 GB to fill it; test_refusals.c does without.
fill_queue() {
    for n in $(seq 16); do
        fleet_psql -d postgres -c "SELECT count(pg_notify('stuck', repeat('x', 7000) || g || '.$n')) FROM generate_series(1, 8) g" || return
    done
}
in_queue() {
    test "$(fleet_psql -d postgres -At -c "SELECT count(*) FROM holdfast_waiter WHERE name = 'full'")" = 1
}
if [ "$version" -ge 170000 ]; then
    fleet_psql -d postgres -c 'LISTEN stuck' -c BEGIN -c 'SELECT pg_sleep(60)' >/dev/null 2>&1 &
    deaf=$!
    fleet_until sh -c '"$1" -X -At -h "$2" -p "$3" -U postgres -c "SELECT query FROM pg_stat_activity" | grep -q "^SELECT pg_sleep"' \
        - "$pg_tools/psql" "$pg_dir" "$pg_port"
    check "the queue of notifications fills up" says 'NOTIFY queue' fill_queue
    ticket=$(ticket_of "$url" full)
    hf run -u "$url" -w 15s full -- true &
    waiter=$!
    fleet_until in_queue
    check "c6_a full queue keeps nobody from releasing" hf unlock -u "$url" --ticket "$ticket" full
    check "c12_and who waits comes in before the lease would have run out" wait "$waiter"
    kill "$deaf"
    fleet_psql -d postgres -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'" >/dev/null
fi

# C6: the reply to the attempt is lost after the commit.
"$here/losing_proxy.py" "$fleet_dir/port" "$pg_port" "$fleet_dir/cut" >/dev/null 2>&1 &
fleet_pids="$! $fleet_pids"
fleet_until test -e "$fleet_dir/port"
proxy=postgres://postgres@127.0.0.1:$(cat "$fleet_dir/port")/postgres
touch "$fleet_dir/cut"
check "c6_lost_commit_reply_is_asked_for_again" hf run -u "$proxy" lost -- true
check "c6_the_reply_was_lost_indeed" test ! -e "$fleet_dir/cut"
check "c6_nothing_is_left" test "$(fleet_psql -d postgres -At -c "SELECT count(*) FROM holdfast_holder WHERE name = 'lost'")" = 0

# Far more processes than the server has connections for: who gets none waits, as for a lock.
kill -INT "$pg_pid"
wait "$pg_pid" 2>/dev/null
pg_max_connections=20
fleet_start_postgres
crowd_size=100 # of rules.sh
check_crowd -u "$url"
kill -INT "$pg_pid"
wait "$pg_pid" 2>/dev/null
pg_max_connections=
fleet_start_postgres

# A pooler in transaction mode.
fleet_pgbouncer transaction
pooled=postgres://postgres@127.0.0.1:$bouncer_port/postgres
check "c1_leases_work_behind_a_pooler" hf run -u "$pooled" pooled -- "$HOLDFAST" run -u "$pooled" pooled2 -- true
check "doctor sees the pooler" sh -c '"$HOLDFAST" doctor -u "$1" | grep -q "a pooler stands between"' - "$pooled"

# TLS and passwords.
(cd "$pg_dir/data" && openssl req -x509 -newkey rsa:2048 -nodes -keyout server.key -out server.crt -days 2 \
    -subj /CN=localhost -addext 'subjectAltName = DNS:localhost') >/dev/null 2>&1
chmod 600 "$pg_dir/data/server.key"
[ "$(id -u)" -ne 0 ] || chown postgres:postgres "$pg_dir/data/server.key" "$pg_dir/data/server.crt"
fleet_psql -d postgres -c "CREATE ROLE safe LOGIN PASSWORD 'secret'" -c "GRANT ALL ON ALL TABLES IN SCHEMA public TO safe" \
    -c "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO safe" -c "ALTER SYSTEM SET ssl = on"
echo "hostssl all safe 127.0.0.1/32 scram-sha-256" >"$pg_dir/data/pg_hba.conf"
echo "host all postgres 127.0.0.1/32 trust" >>"$pg_dir/data/pg_hba.conf"
echo "local all all trust" >>"$pg_dir/data/pg_hba.conf"
fleet_psql -d postgres -c 'SELECT pg_reload_conf()' >/dev/null
fleet_until sh -c '"$1" -X -At -h "$2" -p "$3" -U postgres -d postgres -c "SHOW ssl" | grep -q on' - "$pg_tools/psql" "$pg_dir" "$pg_port"
echo secret >"$fleet_dir/password"
echo "localhost:$pg_port:*:safe:secret" >"$fleet_dir/pgpass"
echo "wrong" >"$fleet_dir/wrong"
chmod 600 "$fleet_dir/password" "$fleet_dir/pgpass" "$fleet_dir/wrong"
safe="postgres://safe@localhost:$pg_port/postgres?tls=verify"
check "tls=verify with the right authority" hf run -u "$safe&tls_ca=$pg_dir/data/server.crt&password_file=$fleet_dir/password" tls -- true
check "a password file of PostgreSQL's own form" hf run -u "$safe&tls_ca=$pg_dir/data/server.crt&passfile=$fleet_dir/pgpass" tls -- true
check "tls=verify refuses an unknown authority" says 'certificate' hf run -u "$safe&password_file=$fleet_dir/password&op_timeout=2s" tls -- true
check "tls=verify refuses another host name" says 'host name' hf run -u "postgres://safe@127.0.0.1:$pg_port/postgres?tls=verify&tls_ca=$pg_dir/data/server.crt&password_file=$fleet_dir/password&op_timeout=2s" tls -- true
check "who names an authority wants TLS, on loopback too" hf run -u "postgres://safe@localhost:$pg_port/postgres?tls_ca=$pg_dir/data/server.crt&password_file=$fleet_dir/password" tls -- true
check "tls=insecure takes any" hf run -u "postgres://safe@localhost:$pg_port/postgres?tls=insecure&password_file=$fleet_dir/password" tls -- true
check "a wrong password is told, and not shown" says 'check user and password' hf run -u "$safe&tls_ca=$pg_dir/data/server.crt&password_file=$fleet_dir/wrong" tls -- true
exit "$failed"
