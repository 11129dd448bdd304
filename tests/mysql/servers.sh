#!/bin/sh
# What needs the server itself to be changed: killed and started again, with TLS, with passwords in files.
# One line a rule, "ok" or "FAIL".
here=$(cd -P -- "$(dirname -- "$0")" && pwd) || exit 69
# shellcheck source=tests/fleet/fleet.sh
. "$here/../fleet/fleet.sh"
# shellcheck source=tests/fleet/mariadb.sh
. "$here/../fleet/mariadb.sh"
# shellcheck source=tests/fleet/rules.sh
. "$here/../fleet/rules.sh"

command -v openssl >/dev/null 2>&1 || fleet_skip "openssl is not installed"
chmod 755 "$fleet_dir"
cert() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$2" -addext "subjectAltName=DNS:$2" \
        -keyout "$fleet_dir/$1.key" -out "$fleet_dir/$1.pem" 2>/dev/null
    chmod 644 "$fleet_dir/$1.key"
}
cert server localhost
cert other localhost
fleet_mariadb mariadb --innodb-flush-log-at-trx-commit=1 --ssl-cert="$fleet_dir/server.pem" \
    --ssl-key="$fleet_dir/server.key"
fleet_mariadb_sql -e "CREATE DATABASE locks; CREATE USER app IDENTIFIED BY 'secret';
    GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON locks.* TO app" || exit 69
tcp=127.0.0.1:$maria_port
check "setup creates what is missing" hf setup -u "mysql://root@$tcp/locks"
check "doctor says what removes names that nobody uses" shows 'holdfast gc' hf doctor -u "mysql://root@$tcp/locks"

# Tables as version 1 had them, with a lock that is held. Version 1 was for MariaDB only.
check_old_tables() {
    old=mysql://root@$tcp/old
    fleet_mariadb_sql -e "CREATE DATABASE old" && hf setup -u "$old" >/dev/null &&
        hf lock -u "$old" --never-expires held >/dev/null &&
        fleet_mariadb_sql old -e "ALTER TABLE holdfast_lock DROP COLUMN inside, DROP COLUMN token, DROP COLUMN since,
            DROP COLUMN ttl, DROP COLUMN retire, DROP COLUMN wake, DROP COLUMN host, DROP COLUMN username,
            DROP COLUMN program, DROP COLUMN pid, DROP COLUMN note, ADD COLUMN sole BINARY(16);
            UPDATE holdfast_lock SET sole = (SELECT ticket FROM holdfast_holder);
            UPDATE holdfast_schema SET version = 1" || exit 69
    check "tables of version 1 are refused" says "holdfast setup" hf run -u "$old" a -- true
    check "setup brings them up to date" hf setup -u "$old"
    check "again" hf setup -u "$old"
    check "c1 what was held is held" says "not obtained\|busy\|held" hf run -u "$old" -n held -- true
    check "and the rest is free" hf run -u "$old" -n a -- true
    check "by the short way, too" hf run -u "$old" -n a -- true
}
case ${HOLDFAST_TEST_MARIADB_VERSION-} in
mysql-*) ;;
*) check_old_tables ;;
esac

# Tables and procedures of version 2, with a lock that is held.
before=mysql://root@$tcp/before
fleet_mariadb_sql -e "CREATE DATABASE \`before\`" && hf setup -u "$before" >/dev/null &&
    hf lock -u "$before" --never-expires held >/dev/null &&
    fleet_mariadb_sql before -e "ALTER TABLE holdfast_holder DROP COLUMN flags; ALTER TABLE holdfast_waiter DROP COLUMN flags;
        DROP TABLE holdfast_value; DROP PROCEDURE holdfast_routines" || exit 69
check "procedures of version 2 are not used" says "holdfast setup" hf run -u "$before" a -- true
check "setup brings tables and procedures up to date" hf setup -u "$before"
check "c1 what was held meanwhile is held" says "not obtained\|busy\|held" hf run -u "$before" -n held -- true
check "c15 and there is a place for a value" test \
    "$(fleet_mariadb_sql before -Ne "CALL holdfast_read('held', '', 0)" | cut -f1)" = 'done'

# hold=session's rows with a counter, which MariaDB 11 does not wait for.
counter=mysql://root@$tcp/locks
counts() {
    fleet_mariadb_sql -Ne "SELECT extra FROM information_schema.columns WHERE table_schema = 'locks' AND
        table_name = 'holdfast_session_holder' AND column_name = 'id'" | grep -qi auto_increment
}
not() {
    ! "$@"
}
fleet_mariadb_sql locks -e "ALTER TABLE holdfast_session_holder MODIFY id BIGINT NOT NULL AUTO_INCREMENT"
check "setup does not wait for who holds by hold=session" says "hold=session.*holdfast setup" \
    hf run -u "$counter?hold=session" held -- "$HOLDFAST" setup -u "$counter"
check "the counter is still there" counts
check "setup removes it" hf setup -u "$counter"
check "it is gone" not counts
check "and hold=session works" hf run -u "$counter?hold=session" held -- true

# MySQL cannot replace a procedure: what is there already must stay.
set_up_again() {
    for database in locks locks locks locks locks; do
        hf setup -u "mysql://root@$tcp/$database" || return
    done
    touch "$fleet_dir/set-up"
}
locks_while_set_up() {
    set_up_again &
    until test -e "$fleet_dir/set-up"; do
        hf run -s -u "mysql://root@$tcp/locks" "used" -- true || return
    done
    wait "$!"
}
check "whoever locks while setup runs gets the lock" locks_while_set_up

printf 'secret\n' >"$fleet_dir/password"
printf '[client]\nuser=app\npassword=secret\n' >"$fleet_dir/my.cnf"
chmod 600 "$fleet_dir/password" "$fleet_dir/my.cnf"
export HOLDFAST_TEST_PASSWORD=secret
check "a password in a file" hf run -u "mysql://app@$tcp/locks?password_file=$fleet_dir/password" a -- true
check "a password in the environment" hf run -u "mysql://app@$tcp/locks?password_env=HOLDFAST_TEST_PASSWORD" a -- true
check "user and password in an option file" hf run -u "mysql://$tcp/locks?option_file=$fleet_dir/my.cnf" a -- true

HOLDFAST_URL="mysql://app@localhost:$maria_port/locks?password_file=$fleet_dir/password"
export HOLDFAST_URL
check "TLS with the right authority" hf run -u "$HOLDFAST_URL&tls=verify&tls_ca=$fleet_dir/server.pem" a -- true
check "TLS with another authority is refused" says tls_ca \
    hf run -u "$HOLDFAST_URL&tls=verify&tls_ca=$fleet_dir/other.pem" a -- true
check "TLS under another name is refused" says tls_ca hf run \
    -u "mysql://app@$tcp/locks?password_file=$fleet_dir/password&tls=verify&tls_ca=$fleet_dir/server.pem" a -- true
check "who names an authority wants TLS, on loopback too" says tls_ca \
    hf run -u "$HOLDFAST_URL&tls_ca=$fleet_dir/other.pem" a -- true
check "TLS insecure" hf run -u "$HOLDFAST_URL&tls=insecure" a -- true

# lose WHAT TEXT NAME: whose reply is lost, what is in it, the lock.
lose() {
    rm -f "$fleet_dir/proxy"
    python3 "$here/../postgres/losing_proxy.py" "$fleet_dir/proxy" "$maria_port" "$fleet_dir/cut" "$2" &
    fleet_pids="$fleet_pids $!"
    fleet_until test -s "$fleet_dir/proxy"
    touch "$fleet_dir/cut"
    check "c6 a lost reply to $1 is asked for again" hf run \
        -u "mysql://app@127.0.0.1:$(cat "$fleet_dir/proxy")/locks?password_file=$fleet_dir/password" "$3" -- true
    check "c6 it was lost" test ! -e "$fleet_dir/cut"
    check "c6 and nothing is left behind" hf run -n "$3" -- true
}
lose "the procedure's COMMIT" granted new
check "a name that is known" hf run known -- true
lose "the short way's UPDATE" "Changed: 1" known

check "c4 a token before the crash" hf lock --never-expires --json crash
hf show --json crash | jq -r '.. | .token? // .generation? // empty' | head -n 1 >"$fleet_dir/before"
kill -9 "$maria_pid"
wait "$maria_pid" 2>/dev/null
check "a server that is gone is told" says . hf run -u "$HOLDFAST_URL&op_timeout=300ms" -w 1s a -- true
fleet_start_mariadb --innodb-flush-log-at-trx-commit=1 --ssl-cert="$fleet_dir/server.pem" \
    --ssl-key="$fleet_dir/server.key" || exit 69
check "c3 a lock that never expires survives kill -9 of the server" says . hf run -n crash -- true
hf show --json crash | jq -r '.. | .token? // .generation? // empty' | head -n 1 >"$fleet_dir/after"
check "c4 and so does its token" cmp "$fleet_dir/before" "$fleet_dir/after"
check "c4 which is there" test -s "$fleet_dir/after"

# Far more processes than the server has connections for: who gets none waits, as for a lock.
fleet_mariadb_sql -e "SET GLOBAL max_connections = 20"
# shellcheck disable=SC2119 # no options
check_crowd
exit "$failed"
