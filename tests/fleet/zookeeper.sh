# shellcheck shell=sh disable=SC2154,SC2034 # shared with fleet.sh and the with-* commands
# ZooKeeper servers for tests; sourced after fleet.sh. Short ticks, so that sessions of 200 ms are
# allowed, and sessions of a week, so that every ttl is; no fsync, since nothing here is to last.

zk_java="-Xms32m -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+PerfDisableSharedMem
 -Dzookeeper.admin.enableServer=false -Dzookeeper.jmx.log4j.disable=true -Dzookeeper.forceSync=no
 -Djava.net.preferIPv4Stack=true -Dorg.slf4j.simpleLogger.defaultLogLevel=warn ${HOLDFAST_TEST_ZOOKEEPER_JAVA-}"
zk_path=/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar

# zk_fetch VERSION DIRECTORY: a release from Maven Central, with what it needs to run.
zk_fetch() {
    cat >"$fleet_dir/pom.xml" <<END
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>holdfast</groupId><artifactId>fleet</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>$1</version></dependency>
<dependency><groupId>io.dropwizard.metrics</groupId><artifactId>metrics-core</artifactId><version>4.1.12.1</version></dependency>
<dependency><groupId>org.xerial.snappy</groupId><artifactId>snappy-java</artifactId><version>1.1.10.5</version></dependency>
</dependencies></project>
END
    mvn -B -q -Dstyle.color=never -f "$fleet_dir/pom.xml" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$2"
}

# zk_need: skips the test unless a server can be started. HOLDFAST_TEST_ZOOKEEPER_VERSION, if set, is
# fetched; otherwise it is the one that is installed.
zk_need() {
    command -v java >/dev/null 2>&1 || fleet_skip "java is not installed"
    if [ -n "${HOLDFAST_TEST_ZOOKEEPER_VERSION-}" ]; then
        # shellcheck source=tests/fleet/fetch.sh
        . "$here/fetch.sh"
        fleet_once "zookeeper-$HOLDFAST_TEST_ZOOKEEPER_VERSION" zk_fetch "$HOLDFAST_TEST_ZOOKEEPER_VERSION"
        zk_path="$fetched/*"
    else
        [ -e /usr/share/java/zookeeper.jar ] || fleet_skip "zookeeper is not installed"
    fi
}

# zk_configure DIR PORT [LINE...]: writes a configuration, for clients of zk_address.
zk_address=127.0.0.1
zk_configure() {
    mkdir -p "$1/data"
    {
        echo tickTime=100 initLimit=100 "syncLimit=${zk_sync:-50}" minSessionTimeout=200 "maxSessionTimeout=${HOLDFAST_TEST_ZOOKEEPER_LONGEST:-900000000}" \
            "dataDir=$1/data" "clientPort=$2" "clientPortAddress=$zk_address" "maxClientCnxns=${HOLDFAST_TEST_ZOOKEEPER_CONNECTIONS:-0}" \
            '4lw.commands.whitelist=*' admin.enableServer=false | tr ' ' '\n'
        echo
        shift 2
        for line in "$@"; do echo "$line"; done
    } >"$dir/zoo.cfg"
}

# zk_start DIR [COMMAND...]: starts the server of a configuration, by the command; sets zk_pid.
zk_start() {
    zk_conf=$1
    shift
    # shellcheck disable=SC2086 # options are words
    "$@" java $zk_java -cp "$zk_path" org.apache.zookeeper.server.quorum.QuorumPeerMain "$zk_conf/zoo.cfg" \
        </dev/null >>"$zk_conf/log" 2>&1 &
    zk_pid=$!
    fleet_pids="$fleet_pids $zk_pid"
}

# zk_mode PORT [HOST]: leader, follower or standalone; fails while it is none of them.
zk_mode() {
    python3 - "$1" "${2:-127.0.0.1}" <<'END'
import socket, sys
s = socket.create_connection((sys.argv[2], int(sys.argv[1])), 1)
s.sendall(b"srvr")
text = b""
while True:
    part = s.recv(4096)
    if not part:
        break
    text += part
mode = [l for l in text.decode().splitlines() if l.startswith("Mode: ")]
print(mode[0][6:])
END
}

# zk_single: one server; sets zk_port, zk_pid, zk_dir.
zk_single() {
    zk_need
    dir=$fleet_dir/zk
    for attempt in 1 2 3; do
        zk_port=$(fleet_port)
        zk_configure "$dir" "$zk_port"
        zk_start "$dir"
        zk_dir=$dir
        fleet_until zk_mode "$zk_port" && return 0
        echo "fleet: zookeeper did not start (try $attempt)" >&2
    done
    cat "$dir/log" >&2
    exit 69
}

# zk_ensemble: three servers; sets zk_ports, zk_pids (lists) and zk_base, the directory above
# 1, 2 and 3.
zk_ensemble() {
    zk_need
    zk_base=$fleet_dir
    for attempt in 1 2 3; do
        zk_ports='' zk_pids='' lines=''
        for i in 1 2 3; do
            lines="$lines server.$i=127.0.0.1:$(fleet_port):$(fleet_port)"
            zk_ports="$zk_ports $(fleet_port)"
        done
        zk_ports=${zk_ports# }
        i=0
        for port in $zk_ports; do
            i=$((i + 1))
            dir=$zk_base/$i
            # shellcheck disable=SC2086 # lines are words
            zk_configure "$dir" "$port" $lines
            echo $i >"$dir/data/myid"
            zk_start "$dir"
            zk_pids="$zk_pids $zk_pid"
        done
        ready=0
        for port in $zk_ports; do fleet_until zk_mode "$port" && ready=$((ready + 1)); done
        zk_pids=${zk_pids# }
        [ "$ready" = 3 ] && return 0
        echo "fleet: the ensemble did not start (try $attempt)" >&2
        for pid in $zk_pids; do kill "$pid" 2>/dev/null; done
        rm -rf "$zk_base/1" "$zk_base/2" "$zk_base/3"
    done
    exit 69
}

# zk_run URL COMMAND...: the command, with "@URL@" in its arguments replaced by the URL, as a user whose
# nodes are its own.
zk_run() {
    fleet_word @URL@ "zookeeper://tests:secret@${1#zookeeper://}"
    shift
    fleet_run "$@"
}
