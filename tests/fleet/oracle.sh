# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # for those who source this; fleet_dir is of fleet.sh
# A server that takes Oracle's SQL over ODBC, for tests: Oracle itself cannot be had. Sourced after fleet.sh and
# mariadb.sh. fleet_oracle_mariadb starts one and sets four URLs: oracle_empty, of an account that may create things
# in an empty database; oracle_admin, the same in the database of the locks; oracle_app, there, with the least rights;
# oracle_denied, without the right to the package.
: "${fleet_dir:?}" "${HOLDFAST:?is the command that sets the tables up}"

# fleet_need_driver NAME PACKAGE: skips unless unixODBC knows the driver.
fleet_need_driver() {
    odbcinst -q -d -n "$1" >/dev/null 2>&1 || fleet_skip "unixODBC has no driver '$1' ($2)"
}

# fleet_oracle_mariadb [OPTION...]: MariaDB in its ORACLE mode.
fleet_oracle_mariadb() {
    fleet_need_driver "MariaDB Unicode" odbc-mariadb
    fleet_mariadb oracle "$@"
    fleet_mariadb_sql -e "CREATE DATABASE locks; CREATE DATABASE empty; CREATE USER app IDENTIFIED BY 'secret';
        CREATE USER denied IDENTIFIED BY 'secret'; GRANT SELECT, INSERT, UPDATE, DELETE ON locks.* TO denied;
        GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON locks.* TO app" || exit 69
    server="connect=DRIVER={MariaDB Unicode};SERVER=127.0.0.1;PORT=$maria_port"
    oracle_empty="oracle://root@/empty?$server"
    oracle_admin="oracle://root@/locks?$server"
    oracle_app="oracle://app:secret@/locks?$server"
    oracle_denied="oracle://denied:secret@/locks?$server"
}

# Creates holdfast's tables and package, with the command that HOLDFAST names.
fleet_oracle_setup() {
    HOLDFAST_URL=$oracle_admin "$HOLDFAST" setup >"$fleet_dir/setup" 2>&1 || { cat "$fleet_dir/setup" >&2; exit 69; }
}
