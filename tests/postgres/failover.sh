#!/bin/sh
# A primary with a standby that is promoted: what it has received stays held, what it has not is told as lost as soon as
# the client is connected to it, and tokens rise. One line a rule, "ok" or "FAIL".
here=$(cd -P -- "$(dirname -- "$0")" && pwd) || exit 69
# shellcheck source=tests/fleet/fleet.sh
. "$here/../fleet/fleet.sh"
# shellcheck source=tests/fleet/postgres.sh
. "$here/../fleet/postgres.sh"
# shellcheck source=tests/fleet/rules.sh
. "$here/../fleet/rules.sh"
# shellcheck source=tests/fleet/steps.sh
. "$here/../fleet/steps.sh"

fleet_postgres primary
hf setup -u "postgres://postgres@127.0.0.1:$pg_port/postgres" >/dev/null || exit 69
# Not all versions come with pg_basebackup: a server that has been stopped can be copied as it is.
kill -INT "$pg_pid"
wait "$pg_pid" 2>/dev/null
mkdir "$fleet_dir/standby"
cp -a "$pg_dir/data" "$fleet_dir/standby/data"
[ "$(id -u)" -ne 0 ] || chown postgres:postgres "$fleet_dir/standby"
echo "primary_conninfo = 'host=127.0.0.1 port=$pg_port user=postgres'" >>"$fleet_dir/standby/data/postgresql.auto.conf"
touch "$fleet_dir/standby/data/standby.signal"
fleet_start_postgres
primary_port=$pg_port primary_pid=$pg_pid
pg_dir=$fleet_dir/standby
pg_port=$(fleet_port)
fleet_start_postgres

has_received() {
    test "$(fleet_psql -d postgres -At -c "SELECT count(*) FROM public.holdfast_now WHERE name = '$1'")" = 1
}
receives_nothing() {
    test "$(fleet_psql -d postgres -At -c 'SELECT count(*) FROM pg_stat_wal_receiver')" = 0
}

steps_begin "postgres://postgres@127.0.0.1:$pg_port,127.0.0.1:$primary_port/postgres"
check_step take kept
check "the standby has received it" fleet_until has_received kept
fleet_psql -d postgres -c "ALTER SYSTEM SET primary_conninfo = ''" -c 'SELECT pg_reload_conf()' >/dev/null
check "the standby receives nothing more" fleet_until receives_nothing
check_step take forgotten
before=$token
kill -9 "$primary_pid"
wait "$primary_pid" 2>/dev/null
fleet_psql -d postgres -c 'SELECT pg_promote()' >/dev/null
check_step take reconnects
check_step lost forgotten
check_step held kept
check_step take forgotten
check "c4_tokens_rise_over_a_failover" test "$token" -gt "$before"
check_step free kept
check_step free reconnects
steps_end
exit "$failed"
