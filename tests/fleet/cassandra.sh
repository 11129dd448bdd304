# shellcheck shell=sh disable=SC2154,SC2034 # shared with fleet.sh and the with-* commands
# Apache Cassandra for tests; sourced after fleet.sh. Debian has no package of it: its jars come from
# Maven Central, once, into a cache directory of the user. Everything is small, nothing is synced, and
# nodes are killed at the end, since nothing here is to last.

cassandra_version=5.0.9
cassandra_sync=${HOLDFAST_TEST_CASSANDRA_SYNC:-periodic} # batch: what was answered survives kill -9
cassandra_home=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast-tests/cassandra-$cassandra_version

cassandra_fail() {
    [ -z "${HOLDFAST_TEST_SKIP_CASSANDRA-}" ] || fleet_skip "$*"
    echo "fleet: $* (HOLDFAST_TEST_SKIP_CASSANDRA=1 skips what needs it)" >&2
    exit 69
}

# Cassandra 5.0 runs on Java 17, not on every newer one.
cassandra_find_java() {
    for java in "${JAVA_HOME-}/bin/java" /usr/lib/jvm/java-17-openjdk*/bin/java \
        "$(command -v java 2>/dev/null)"; do
        [ -x "$java" ] && "$java" -version 2>&1 | grep -q 'version "17\.' && cassandra_java=$java && return
    done
    cassandra_fail "Java 17 is not installed (openjdk-17-jre-headless)"
}

# cassandra_fetch: the jars and what they need, under a lock, since tests run beside each other.
cassandra_fetch() {
    [ -e "$cassandra_home/complete" ] && return
    command -v mvn >/dev/null 2>&1 || cassandra_fail "Maven is not installed (maven), and Cassandra's jars are not here yet"
    mkdir -p "${cassandra_home%/*}" || cassandra_fail "cannot write to ${cassandra_home%/*}"
    (
        flock 9
        [ -e "$cassandra_home/complete" ] && exit 0
        echo "fleet: fetching Cassandra $cassandra_version from Maven Central into $cassandra_home" >&2
        cat >"$fleet_dir/pom.xml" <<END
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>holdfast</groupId><artifactId>fleet</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.cassandra</groupId><artifactId>cassandra-all</artifactId>
<version>$cassandra_version</version></dependency></dependencies></project>
END
        mvn -B -q -Dstyle.color=never -f "$fleet_dir/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
            "-DoutputDirectory=$cassandra_home" >"$fleet_dir/fetch.log" 2>&1 && : >"$cassandra_home/complete"
    ) 9>"$cassandra_home.lock" || cassandra_fail "Cassandra $cassandra_version could not be fetched from Maven Central: $(grep -m1 ERROR "$fleet_dir/fetch.log")"
}

# cassandra_plan NODES [--login] [--tls]: ports and configurations for so many nodes, on 127.0.0.1,
# .2, .3; each with a script $fleet_dir/<n>/start that runs it in the foreground.
cassandra_plan() {
    cassandra_find_java
    cassandra_fetch
    cassandra_nodes=$1 cassandra_port=$(fleet_port) cassandra_storage=$(fleet_port)
    cassandra_login='' cassandra_tls=''
    shift
    for option; do
        case $option in
        --login) cassandra_login=1 ;;
        --tls) cassandra_tls=1 && cassandra_certificates ;;
        esac
    done
    cassandra_addresses=
    for n in $(seq "$cassandra_nodes"); do
        cassandra_addresses=$cassandra_addresses${cassandra_addresses:+,}127.0.0.$n
    done
    cassandra_write_log_settings
    for n in $(seq "$cassandra_nodes"); do
        mkdir -p "$fleet_dir/$n/data"
        cassandra_write_settings "$n" >"$fleet_dir/$n/cassandra.yaml"
        cassandra_write_start "$n" >"$fleet_dir/$n/start"
        head -c 8 /dev/zero >"$fleet_dir/$n/clock"
        : >"$fleet_dir/$n/log"
    done
}

# Fixed tokens, all nodes seeds, no bootstrap: so they can start side by side.
cassandra_write_settings() {
    cat <<END
cluster_name: holdfast
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
num_tokens: 1
initial_token: $((-9223372036854775807 + 6148914691236517205 * ($1 - 1)))
auto_bootstrap: false
seed_provider: [{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: "$cassandra_addresses"}]}]
listen_address: 127.0.0.$1
rpc_address: 127.0.0.$1
native_transport_port: $cassandra_port
storage_port: $cassandra_storage
paxos_variant: v2
data_file_directories: [$fleet_dir/$1/data/data]
commitlog_directory: $fleet_dir/$1/data/commitlog
saved_caches_directory: $fleet_dir/$1/data/caches
hints_directory: $fleet_dir/$1/data/hints
cdc_raw_directory: $fleet_dir/$1/data/cdc
commitlog_sync: $cassandra_sync
$([ "$cassandra_sync" = batch ] || echo commitlog_sync_period: 10000ms)
commitlog_segment_size: 4MiB
disk_access_mode: standard
hinted_handoff_enabled: false
auto_snapshot: false
concurrent_reads: 16
concurrent_writes: 16
concurrent_counter_writes: 2
concurrent_materialized_view_writes: 2
concurrent_compactors: 1
native_transport_max_threads: 32
memtable_allocation_type: heap_buffers
memtable_heap_space: 64MiB
key_cache_size: 1MiB
row_cache_size: 0MiB
counter_cache_size: 0MiB
read_request_timeout: 2s
write_request_timeout: 2s
cas_contention_timeout: 1s
END
    [ -z "$cassandra_login" ] || cat <<END
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
END
    [ -z "$cassandra_tls" ] || cat <<END
client_encryption_options: {enabled: true, optional: false, keystore: $fleet_dir/server.p12, keystore_password: holdfast, store_type: PKCS12}
END
}

cassandra_write_log_settings() {
    cat >"$fleet_dir/logback.xml" <<'END'
<configuration><appender name="out" class="ch.qos.logback.core.ConsoleAppender"><encoder>
<pattern>%d{HH:mm:ss.SSS} %-5level %logger{0} %msg%n</pattern></encoder></appender>
<root level="WARN"><appender-ref ref="out"/></root>
<logger name="org.apache.cassandra.transport.PipelineConfigurator" level="INFO"/>
<logger name="org.apache.cassandra.auth.CassandraRoleManager" level="INFO"/>
<logger name="org.apache.cassandra.gms.Gossiper" level="INFO"/>
<logger name="org.apache.cassandra.service.StorageService" level="DEBUG"/></configuration>
END
}

# The list of exports is that of Cassandra's own jvm17-server.options. With a time shim
# (HOLDFAST_TEST_CLOCK_SHIM) the node's clock is off by the milliseconds in $fleet_dir/<n>/clock, an int64.
cassandra_write_start() {
    echo '#!/bin/sh'
    if [ -n "${HOLDFAST_TEST_CLOCK_SHIM-}" ]; then
        echo "export HOLDFAST_TEST_CLOCK='$fleet_dir/$1/clock' LD_PRELOAD='$HOLDFAST_TEST_CLOCK_SHIM'"
    fi
    cat <<END
exec '$cassandra_java' -Xms${HOLDFAST_TEST_CASSANDRA_HEAP:-512m} -Xmx${HOLDFAST_TEST_CASSANDRA_HEAP:-512m} \\
 -Xss256k -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+PerfDisableSharedMem -XX:-UsePerfData \\
 -Djava.net.preferIPv4Stack=true -Djdk.attach.allowAttachSelf=true -Djava.io.tmpdir='$fleet_dir/$1' \\
END
    for package in java.base/jdk.internal.misc java.base/jdk.internal.ref java.base/sun.nio.ch \
        java.base/java.lang.ref java.management.rmi/com.sun.jmx.remote.internal.rmi \
        java.rmi/sun.rmi.registry java.rmi/sun.rmi.server java.rmi/sun.rmi.transport.tcp \
        java.sql/java.sql jdk.unsupported/sun.misc; do
        echo " --add-exports=$package=ALL-UNNAMED \\"
    done
    for package in java.base/java.io java.base/java.lang java.base/java.lang.module \
        java.base/java.lang.reflect java.base/java.nio java.base/java.util \
        java.base/java.util.concurrent java.base/java.util.concurrent.atomic \
        java.base/jdk.internal.loader java.base/jdk.internal.math java.base/jdk.internal.module \
        java.base/jdk.internal.ref java.base/jdk.internal.reflect java.base/jdk.internal.util.jar \
        java.base/sun.nio.ch jdk.management/com.sun.management.internal; do
        echo " --add-opens=$package=ALL-UNNAMED \\"
    done
    cat <<END
 -Dcassandra.config='file://$fleet_dir/$1/cassandra.yaml' -Dcassandra.storagedir='$fleet_dir/$1/data' \\
 -Dlogback.configurationFile='$fleet_dir/logback.xml' -Dcassandra-foreground=yes \\
 -Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.ring_delay_ms=0 \\
 -Dcassandra.gossip_quarantine_delay_ms=20000 \\
 -Dcassandra.superuser_setup_delay_ms=0 -Dcassandra.memtable.row_overhead_size=180 \\
 -Dcassandra.skip_sync=true -cp '$cassandra_home/*' org.apache.cassandra.service.CassandraDaemon
END
}

# A server's certificate for 127.0.0.1 to .3, its authority in $fleet_dir/ca.pem.
cassandra_certificates() {
    (
        cd "$fleet_dir" &&
            openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem &&
            openssl req -newkey rsa:2048 -nodes -subj /CN=node -keyout server.key -out server.csr &&
            echo 'subjectAltName=IP:127.0.0.1,IP:127.0.0.2,IP:127.0.0.3,DNS:localhost' >san &&
            openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.pem &&
            openssl pkcs12 -export -in server.pem -inkey server.key -passout pass:holdfast -out server.p12
    ) >"$fleet_dir/openssl.log" 2>&1 || { cat "$fleet_dir/openssl.log" >&2; exit 69; }
}

# cassandra_start N: its process id goes to $fleet_dir/<n>/pid, where a test that starts it again
# writes the new one.
cassandra_start() {
    sh "$fleet_dir/$1/start" </dev/null >>"$fleet_dir/$1/log" 2>&1 &
    echo $! >"$fleet_dir/$1/pid"
}

# What the log says, since asking needs a client: it serves, knows the others, has its first account.
cassandra_is_up() {
    grep -q 'Starting listening for CQL clients' "$1" || return 1
    [ "$(grep -o 'Node [^ ]* state NORMAL' "$1" | sort -u | wc -l)" -ge "$cassandra_nodes" ] || return 1
    [ -z "$cassandra_login" ] || [ "$n" != 1 ] || grep -q 'Created default superuser' "$fleet_dir"/*/log
}

# cassandra_await: until all nodes are up, a minute at most.
cassandra_await() {
    for n in $(seq "$cassandra_nodes"); do
        tries=0
        until cassandra_is_up "$fleet_dir/$n/log"; do
            tries=$((tries + 1))
            if [ "$tries" -gt 600 ] || ! kill -0 "$(cat "$fleet_dir/$n/pid")" 2>/dev/null; then
                echo "fleet: Cassandra node $n did not start" >&2
                exit 69
            fi
            sleep 0.1
        done
    done
}

# Nodes are killed, not stopped: draining takes seconds. What they had to say is kept on failure.
cassandra_end() {
    status=$?
    trap - EXIT
    for n in $(seq "$cassandra_nodes"); do
        [ -e "$fleet_dir/$n/pid" ] && kill -KILL "$(cat "$fleet_dir/$n/pid")" 2>/dev/null
    done
    wait
    case $status in
    0 | 77) ;;
    *)
        kept=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-cassandra-logs.XXXXXX")
        for n in $(seq "$cassandra_nodes"); do cp "$fleet_dir/$n/log" "$kept/node$n.log" 2>/dev/null; done
        echo "fleet: what the nodes said is in $kept" >&2
        ;;
    esac
    (exit "$status")
    fleet_stop
}

# cassandra_run NODES [--login] [--tls] [--setup HOLDFAST] COMMAND...: what the with-* commands do.
cassandra_run() {
    options='' setup=''
    nodes=$1
    shift
    while :; do
        case $1 in
        --login | --tls) options="$options $1" ;;
        --setup) setup=$2 && shift ;;
        *) break ;;
        esac
        shift
    done
    # shellcheck disable=SC2086 # options are words
    cassandra_plan "$nodes" $options
    trap cassandra_end EXIT
    hosts=
    for n in $(seq "$nodes"); do
        cassandra_start "$n"
        hosts=$hosts${hosts:+,}127.0.0.$n:$cassandra_port
    done
    cassandra_await
    export HOLDFAST_TEST_CASSANDRA="$hosts" HOLDFAST_TEST_CASSANDRA_DIR="$fleet_dir"
    url=cassandra://${cassandra_login:+cassandra:cassandra@}$hosts/holdfast
    [ -z "$setup" ] || "$setup" setup -u "$url?replication=$nodes&op_timeout=60s" >"$fleet_dir/setup.log" 2>&1 ||
        { cat "$fleet_dir/setup.log" >&2; exit 69; }
    fleet_word @URL@ "$url"
    fleet_run "$@"
}
