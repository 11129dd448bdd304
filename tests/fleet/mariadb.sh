# shellcheck shell=sh
# shellcheck disable=SC2154 # fleet_dir is of fleet.sh
# MariaDB for tests. Sourced after fleet.sh.
: "${fleet_dir:?}"

fleet_as_mysql() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid=mysql --regid=mysql --clear-groups "$@"
    else
        "$@"
    fi
}

# fleet_mariadb NAME [OPTION...]: makes a data directory and starts a server on it; sets maria_dir,
# maria_port, maria_socket and maria_pid. Nothing is flushed at commit: what a power cut would do is not
# tested here, and the tests are many.
fleet_mariadb() {
    command -v mariadbd >/dev/null 2>&1 || fleet_skip "MariaDB is not installed (mariadb-server)"
    chmod 755 "$fleet_dir"
    maria_dir=$fleet_dir/$1
    shift
    mkdir "$maria_dir"
    [ "$(id -u)" -ne 0 ] || chown mysql:mysql "$maria_dir"
    fleet_as_mysql mariadb-install-db --no-defaults --datadir="$maria_dir/data" \
        --auth-root-authentication-method=normal --skip-test-db >"$maria_dir.init" 2>&1 ||
        { cat "$maria_dir.init" >&2; exit 69; }
    maria_socket=$maria_dir/s
    for attempt in 1 2 3; do
        maria_port=$(fleet_port)
        fleet_start_mariadb "$@" && return 0
        echo "fleet: mariadbd did not start (try $attempt)" >&2
    done
    cat "$maria_dir/log" >&2
    exit 69
}

# Starts the server in maria_dir on maria_port (again).
fleet_start_mariadb() {
    set -- mariadbd --no-defaults --datadir="$maria_dir/data" --socket="$maria_socket" \
        --pid-file="$maria_dir/pid" --bind-address=127.0.0.1 --port="$maria_port" \
        --skip-name-resolve --innodb-buffer-pool-size=32M --innodb-log-file-size=16M \
        --performance-schema=OFF --skip-log-bin --max-connections=400 \
        --innodb-flush-log-at-trx-commit=0 "$@"
    [ "$(id -u)" -ne 0 ] || set -- setpriv --reuid=mysql --regid=mysql --clear-groups "$@"
    "$@" </dev/null >>"$maria_dir/log" 2>&1 &
    maria_pid=$!
    fleet_pids="$fleet_pids $maria_pid"
    fleet_until mariadb-admin --no-defaults -uroot --socket="$maria_socket" ping
}

fleet_mariadb_sql() {
    mariadb --no-defaults -uroot --socket="$maria_socket" "$@"
}
