# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # for those who source this; fleet_dir is of fleet.sh
# Servers that take Oracle's SQL over ODBC, for tests: Oracle itself cannot be had. Sourced after fleet.sh and
# mariadb.sh. fleet_oracle_mariadb and fleet_oracle_hsqldb start one and set four URLs: oracle_empty, of an
# account that may create things in an empty database; oracle_admin, the same in the database of the locks;
# oracle_app, there, with the least rights; oracle_plain, without the right to the package (the same on HSQLDB,
# which has no packages).
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
        CREATE USER plain IDENTIFIED BY 'secret'; GRANT SELECT, INSERT, UPDATE, DELETE ON locks.* TO plain;
        GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON locks.* TO app" || exit 69
    server="connect=DRIVER={MariaDB Unicode};SERVER=127.0.0.1;PORT=$maria_port"
    oracle_empty="oracle://root@/empty?$server"
    oracle_admin="oracle://root@/locks?$server"
    oracle_app="oracle://app:secret@/locks?$server"
    oracle_plain="oracle://plain:secret@/locks?$server"
}

# HSQLDB with Oracle syntax, which speaks PostgreSQL's protocol. The password must not be empty.
# UseServerSidePrepare: otherwise the driver writes E'...' strings. Debian's odbcinst.ini has the driver write a
# log of each process into /tmp: ours does not.
fleet_oracle_hsqldb() {
    fleet_need_driver "PostgreSQL Unicode" odbc-postgresql
    jar=/usr/share/java/hsqldb.jar
    [ -e "$jar" ] || fleet_skip "HSQLDB is not installed (libhsqldb-java)"
    command -v java >/dev/null 2>&1 || fleet_skip "java is not installed"
    printf '[PostgreSQL Unicode]\nDriver=psqlodbcw.so\n' >"$fleet_dir/odbcinst.ini"
    export ODBCSYSINI="$fleet_dir"
    hsql_port=$(fleet_port)
    options="user=sa;password=sa;sql.syntax_ora=true;hsqldb.tx=locks"
    java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$jar" org.hsqldb.server.Server \
        --address 127.0.0.1 --port "$hsql_port" --silent true \
        --database.0 "mem:locks;$options" --dbname.0 locks --database.1 "mem:empty;$options" --dbname.1 empty \
        </dev/null >"$fleet_dir/hsqldb.log" 2>&1 &
    fleet_pids="$fleet_pids $!"
    fleet_until python3 -c "import socket; socket.create_connection(('127.0.0.1', $hsql_port))" ||
        { cat "$fleet_dir/hsqldb.log" >&2; exit 69; }
    server="dialect=hsqldb&connect=DRIVER={PostgreSQL Unicode};Server=127.0.0.1;Port=$hsql_port;SSLMode=disable"
    server="$server;UseServerSidePrepare=1;Protocol=7.4-0"
    oracle_empty="oracle://sa:sa@/?$server;Database=empty"
    oracle_admin="oracle://sa:sa@/?$server;Database=locks"
    oracle_app=$oracle_admin
    oracle_plain=$oracle_admin
}

# Creates holdfast's tables and package, with the command that HOLDFAST names.
fleet_oracle_setup() {
    HOLDFAST_URL=$oracle_admin "$HOLDFAST" setup >"$fleet_dir/setup" 2>&1 || { cat "$fleet_dir/setup" >&2; exit 69; }
}
