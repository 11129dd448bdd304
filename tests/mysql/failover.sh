#!/bin/sh
# A primary with a replica that is promoted: what it has received stays held, what it has not is told as lost as soon as
# the client is connected to it, and tokens rise. One line a rule, "ok" or "FAIL".
here=$(cd -P -- "$(dirname -- "$0")" && pwd) || exit 69
# shellcheck source=tests/fleet/fleet.sh
. "$here/../fleet/fleet.sh"
# shellcheck source=tests/fleet/mariadb.sh
. "$here/../fleet/mariadb.sh"
# shellcheck source=tests/fleet/rules.sh
. "$here/../fleet/rules.sh"
# shellcheck source=tests/fleet/steps.sh
. "$here/../fleet/steps.sh"

# The fleet's own --skip-log-bin comes first.
fleet_mariadb primary --log-bin=binlog --server-id=1 --binlog-format=ROW
primary_port=$maria_port primary_pid=$maria_pid
fleet_mariadb_sql -e "CREATE USER copier IDENTIFIED BY 'copy'; GRANT REPLICATION SLAVE ON *.* TO copier;
    CREATE DATABASE locks; CREATE USER app IDENTIFIED BY 'secret';
    GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON locks.* TO app" || exit 69
hf setup -u "mysql://root@127.0.0.1:$primary_port/locks" >/dev/null || exit 69

fleet_mariadb replica --log-bin=binlog --server-id=2 --read-only=ON
fleet_mariadb_sql -e "CHANGE MASTER TO master_host = '127.0.0.1', master_port = $primary_port, master_user = 'copier',
    master_password = 'copy'; START SLAVE" || exit 69

has_received() {
    test "$(fleet_mariadb_sql locks -Ne "SELECT COUNT(*) FROM holdfast_now WHERE name = '$1'")" = 1
}
copies() {
    test "$(fleet_mariadb_sql locks -Ne 'SELECT version FROM holdfast_schema')" -gt 0
}

check "the replica copies" fleet_until copies
steps_begin "mysql://app:secret@127.0.0.1:$maria_port,127.0.0.1:$primary_port/locks"
check_step take kept
check "the replica has received it" fleet_until has_received kept
fleet_mariadb_sql -e 'STOP SLAVE'
check_step take forgotten
before=$token
kill -9 "$primary_pid"
wait "$primary_pid" 2>/dev/null
fleet_mariadb_sql -e 'RESET SLAVE ALL; SET GLOBAL read_only = OFF'
check_step take reconnects
check_step lost forgotten
check_step held kept
check_step take forgotten
check "c4_tokens_rise_over_a_failover" test "$token" -gt "$before"
check_step free kept
check_step free reconnects
steps_end
exit "$failed"
