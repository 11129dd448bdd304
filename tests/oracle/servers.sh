#!/bin/sh
# On a live server (MariaDB in its ORACLE mode, over ODBC): passwords, data sources, killed connections and
# servers, lost replies, missing tables, a crowd.
here=$(cd -P -- "$(dirname -- "$0")" && pwd) || exit 69
# shellcheck source=tests/fleet/fleet.sh
. "$here/../fleet/fleet.sh"
# shellcheck source=tests/fleet/mariadb.sh
. "$here/../fleet/mariadb.sh"
# shellcheck source=tests/fleet/oracle.sh
. "$here/../fleet/oracle.sh"
# shellcheck source=tests/fleet/rules.sh
. "$here/../fleet/rules.sh"
fleet_oracle_mariadb --innodb-flush-log-at-trx-commit=1
fleet_oracle_setup
HOLDFAST_URL=$oracle_app
export HOLDFAST_URL

# The URL of the app account with something else instead of its password.
login() {
    printf '%s' "$oracle_app" | sed -e "s|app:secret@|$1@|"
}

printf 'secret\n' >"$fleet_dir/password"
chmod 600 "$fleet_dir/password"
printf '[locks]\nDriver=MariaDB Unicode\nServer=127.0.0.1\nPort=%s\n' "$maria_port" >"$fleet_dir/odbc.ini"
export HOLDFAST_TEST_PASSWORD=secret ODBCINI="$fleet_dir/odbc.ini"
check "a password in a file" hf run -u "$(login app)&password_file=$fleet_dir/password" a -- true
check "a password in the environment" hf run -u "$(login app)&password_env=HOLDFAST_TEST_PASSWORD" a -- true
check "a data source" hf run -u "oracle://app@/locks?dsn=locks&password_env=HOLDFAST_TEST_PASSWORD" a -- true
# shellcheck disable=SC2016 # the inner shell's
{
    check "c13 the command inherits no connection" sh -c '! "$@" | grep socket:' sh "$HOLDFAST" run \
        -u "$(login app)&password_file=$fleet_dir/password" fds -- ls -l /proc/self/fd
    check "but what it was given" sh -c 'exec 7</dev/null; "$@"' sh "$HOLDFAST" run \
        -u "$(login app)&password_file=$fleet_dir/password" fds -- test -e /proc/self/fd/7
}
check "a wrong password is told" says password_file hf run -u "$(login app:Sesam)" a -- true
hf run -u "$(login app:Sesam)" a -- true >"$fleet_dir/wrong" 2>&1
# shellcheck disable=SC2016
check "and not shown" sh -c '! grep -q Sesam "$1"' sh "$fleet_dir/wrong"
check "missing tables are told" says "holdfast setup" hf run -u "$oracle_empty" a -- true
check "doctor says so too" says "holdfast setup" hf doctor -u "$oracle_empty"
check "setup creates what is missing" hf setup -u "$oracle_empty"
check "and again" hf setup -u "$oracle_empty"
check "setup without the right to create, where all is there" hf setup
fleet_mariadb_sql -N empty -e 'UPDATE holdfast_schema SET version = 7'
check "a newer schema is told" says "newer holdfast" hf run -u "$oracle_empty" a -- true
fleet_mariadb_sql -N empty -e 'UPDATE holdfast_schema SET version = 1'
check "doctor likes it" hf doctor
check "doctor names the schema" shows "schema locks" hf doctor
check "c1_doctor_warns_of_tables_in_another_schema" shows "also in schema empty" hf doctor -u "$oracle_admin"
check "c1_doctor_tells_that_no_schema_is_named" shows "names no schema" hf doctor -u "oracle://app:secret@/?$server;DATABASE=locks"
check "doctor finds the package" shows "one round trip an operation" hf doctor
check "who may not execute the package is told" says "holdfast setup --print" hf run -u "$oracle_denied" a -- true
check "doctor says so too" says "holdfast setup --print" hf doctor -u "$oracle_denied"
fleet_mariadb_sql -N empty -e "SET sql_mode = ORACLE; DROP PACKAGE holdfast_rules"
check "a package that is missing is told" says "holdfast setup --print" hf run -u "$oracle_empty" a -- true
check "setup creates it" hf setup -u "$oracle_empty"
check "and it is used" hf run -u "$oracle_empty" a -- true
check "setup --print is for a DBA to read" shows "GRANT EXECUTE" hf setup --print

# Idle records go, busy ones stay.
records() {
    fleet_mariadb_sql -N locks -e "SELECT COUNT(*) FROM holdfast_lock WHERE name = '$1'"
}
idle_is_gone() {
    hf gc --retain 100ms && [ "$(records idle)" = 0 ]
}
hf run idle -- true
hf lock --never-expires busy >/dev/null
check "gc removes what is idle" fleet_until idle_is_gone
check "and only that" test "$(records busy)" = 1

# Every connection is killed while a lock is held.
# shellcheck disable=SC2016
hf run --ttl 3s killed -- sh -c 'touch "$1/held"; sleep 4' sh "$fleet_dir" 2>"$fleet_dir/killed" &
holder=$!
fleet_until test -e "$fleet_dir/held"
fleet_mariadb_sql -N -e "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE user = 'app'" | fleet_mariadb_sql
check "c1 it is still held" says . hf run -n killed -- true
wait "$holder"
check "c7 killed connections lose no lock" test "$?" = 0

python3 "$here/../postgres/losing_proxy.py" "$fleet_dir/proxy" "$maria_port" "$fleet_dir/cut" &
proxy=$!
fleet_until test -s "$fleet_dir/proxy"
touch "$fleet_dir/cut"
check "c6 a lost reply to the call is asked for again" hf run \
    -u "$(printf '%s' "$oracle_app" | sed -e "s/PORT=$maria_port/PORT=$(cat "$fleet_dir/proxy")/")" lost -- true
check "c6 it was lost" test ! -e "$fleet_dir/cut"
check "c6 and nothing is left behind" hf run -n lost -- true
kill "$proxy"
wait "$proxy" 2>/dev/null

# Somebody keeps the lock's row.
fleet_mariadb_sql -N locks -e "INSERT INTO holdfast_lock VALUES ('row', 0, 0, 0); BEGIN; SELECT * FROM holdfast_lock WHERE
    name = 'row' FOR UPDATE; SELECT SLEEP(3)" >/dev/null &
keeper=$!
# shellcheck disable=SC2016
fleet_until sh -c 'mariadb --no-defaults -N -uroot --socket="$1" -e "SHOW PROCESSLIST" | grep -q SLEEP' sh \
    "$maria_socket"
check "c5 a row that somebody keeps is not waited for inside the server" says "row" \
    hf run -u "$oracle_app&op_timeout=500ms" -n row -- true
check "c1 and taken when it is free" hf run -w 10s row -- true
wait "$keeper"

# All of them at once may take the server longer than one request may take by default.
check_crowd -u "$oracle_app&op_timeout=60s"

kill -STOP "$maria_pid"
check "c7 a server that was stopped is left at the deadline" says "in time" \
    timeout 8 "$HOLDFAST" run -u "$oracle_app&op_timeout=500ms" -n stopped -- true
kill -CONT "$maria_pid"
check "and used again when it goes on" hf run -w 10s stopped -- true

check "c4 a token before the crash" hf lock --never-expires crash
hf show --json crash | jq -r '.. | .token? // .generation? // empty' | head -n 1 >"$fleet_dir/before"
kill -9 "$maria_pid"
wait "$maria_pid" 2>/dev/null
check "a server that is gone is told" says . hf run -u "$oracle_app&op_timeout=300ms" -w 1s a -- true
fleet_start_mariadb --innodb-flush-log-at-trx-commit=1 || exit 69
check "c3 a lock that never expires survives kill -9 of the server" says . hf run -n crash -- true
hf show --json crash | jq -r '.. | .token? // .generation? // empty' | head -n 1 >"$fleet_dir/after"
check "c4 and so does its token" cmp "$fleet_dir/before" "$fleet_dir/after"
check "c4 which is there" test -s "$fleet_dir/after"
exit "$failed"
