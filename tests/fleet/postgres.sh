# shellcheck shell=sh
# shellcheck disable=SC2154 # fleet_dir is of fleet.sh
# PostgreSQL and PgBouncer for tests. Sourced after fleet.sh.

# initdb and postgres refuse to run as root.
fleet_as_postgres() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
    else
        "$@"
    fi
}

# The newest of the installed versions, or the one that HOLDFAST_TEST_POSTGRES_VERSION names, as Maven does: zonky's
# binaries, 17.11.0. pg_tools are the installed ones in either case: psql, pg_isready, pg_basebackup.
fleet_find_postgres() {
    fleet_find_installed_postgres
    pg_tools=$pg_bin
    [ -n "${HOLDFAST_TEST_POSTGRES_VERSION-}" ] || return 0
    # shellcheck source=tests/fleet/fetch.sh
    . "$here/../fleet/fetch.sh"
    fleet_once "postgres-$HOLDFAST_TEST_POSTGRES_VERSION" fetch_postgres "$HOLDFAST_TEST_POSTGRES_VERSION"
    pg_bin=$fetched/bin
}

fetch_postgres() {
    case $(uname -m) in
    x86_64) machine=amd64 ;;
    aarch64) machine=arm64v8 ;;
    *) machine=$(uname -m) ;;
    esac
    fetch_maven "io.zonky.test.postgres:embedded-postgres-binaries-linux-$machine:$1" "$2" &&
        tar -xJf "$2"/postgres-*.txz -C "$2" && rm "$2"/postgres-*.txz
}

fleet_find_installed_postgres() {
    for dir in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -t/ -k5 -rn); do
        [ -x "$dir/postgres" ] && pg_bin=$dir && return 0
    done
    fleet_skip "PostgreSQL is not installed (postgresql)"
}

# fleet_postgres NAME [OPTION...]: makes a cluster and starts it; sets pg_dir, pg_port and pg_pid.
# fsync is off, unless HOLDFAST_TEST_FSYNC is "on": what a power cut would do is not tested here.
fleet_postgres() {
    fleet_find_postgres
    chmod 755 "$fleet_dir"
    pg_dir=$fleet_dir/$1
    shift
    mkdir "$pg_dir"
    [ "$(id -u)" -ne 0 ] || chown postgres:postgres "$pg_dir"
    (cd "$pg_dir" && fleet_as_postgres "$pg_bin/initdb" -D "$pg_dir/data" -A trust -U postgres --no-sync \
        --locale=C.UTF-8 -E UTF8) >"$pg_dir.init" 2>&1 || { cat "$pg_dir.init" >&2; exit 69; }
    pg_port=$(fleet_port)
    fleet_start_postgres "$@"
}

# Starts the cluster in pg_dir on pg_port (again).
fleet_start_postgres() {
    (
        cd "$pg_dir" || exit 69
        [ "$(id -u)" -ne 0 ] || set -- setpriv --reuid=postgres --regid=postgres --clear-groups \
            "$pg_bin/postgres" "$@"
        [ "$(id -u)" -eq 0 ] || set -- "$pg_bin/postgres" "$@"
        exec "$@" -D "$pg_dir/data" -p "$pg_port" -c listen_addresses=127.0.0.1 \
            -c unix_socket_directories="$pg_dir" -c shared_buffers=32MB -c fsync="${HOLDFAST_TEST_FSYNC:-off}" -c max_connections="${pg_max_connections:-1500}"
    ) </dev/null >>"$pg_dir/log" 2>&1 &
    pg_pid=$!
    fleet_pids="$fleet_pids $pg_pid"
    fleet_until "$pg_tools/pg_isready" -q -h "$pg_dir" -p "$pg_port" -U postgres || { cat "$pg_dir/log" >&2; exit 69; }
}

fleet_psql() {
    "$pg_tools/psql" -X -q -h "$pg_dir" -p "$pg_port" -U postgres -v ON_ERROR_STOP=1 "$@"
}

# fleet_pgbouncer MODE: a pooler before the cluster; sets bouncer_port.
fleet_pgbouncer() {
    command -v pgbouncer >/dev/null 2>&1 || fleet_skip "pgbouncer is not installed"
    bouncer_port=$(fleet_port)
    printf '%s\n' '[databases]' "* = host=127.0.0.1 port=$pg_port" '[pgbouncer]' \
        'listen_addr = 127.0.0.1' "listen_port = $bouncer_port" "pool_mode = $1" 'auth_type = any' \
        "unix_socket_dir =" 'default_pool_size = 5' 'max_client_conn = 500' >"$pg_dir/bouncer.ini"
    sed -i 's/^\* = \(.*\)$/* = \1 user=postgres/' "$pg_dir/bouncer.ini"
    (
        [ "$(id -u)" -ne 0 ] || exec setpriv --reuid=postgres --regid=postgres --clear-groups \
            pgbouncer "$pg_dir/bouncer.ini"
        exec pgbouncer "$pg_dir/bouncer.ini"
    ) </dev/null >"$pg_dir.bouncer" 2>&1 &
    fleet_pids="$! $fleet_pids"
    fleet_until "$pg_tools/pg_isready" -q -h 127.0.0.1 -p "$bouncer_port" || { cat "$pg_dir.bouncer" >&2; exit 69; }
}
