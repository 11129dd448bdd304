#!/bin/sh
# command.sh HOLDFAST: setup, doctor and gc on a node with accounts and TLS, and what goes wrong there. One
# line a rule, "ok" or "FAIL". Run by tests/fleet/with-cassandra --login --tls.
holdfast=$1
dir=$HOLDFAST_TEST_CASSANDRA_DIR
node=$HOLDFAST_TEST_CASSANDRA
tls="tls=verify&tls_ca=$dir/ca.pem"
url="cassandra://cassandra:cassandra@$node/locks?$tls"
failed=0

check() {
    rule=$1
    shift
    if "$@" >"$dir/out" 2>&1; then
        echo "ok    $rule"
    else
        echo "FAIL  $rule: $*"
        cat "$dir/out"
        failed=1
    fi
}

# says STATUS TEXT COMMAND...: ends with this status, and says the text.
says() {
    status=$1 text=$2
    shift 2
    "$@" >"$dir/said" 2>&1
    [ $? -eq "$status" ] || { cat "$dir/said"; return 1; }
    cat "$dir/said"
    grep -q -e "$text" "$dir/said"
}

# Tries until it is so, for at most a minute.
until_true() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -le 600 ] || return 1
        sleep 0.1
    done
}

not() {
    ! "$@"
}

check "setup --print shows the tables" says 0 'CREATE TABLE IF NOT EXISTS locks.locks' "$holdfast" setup --print -u "$url"
check "locks without tables name the cure" says 69 'holdfast setup' "$holdfast" run -u "$url" a -- true
check "setup does not guess the replication" says 64 'replication=3' "$holdfast" setup -u "$url"
check "setup refuses nonsense as replication" says 64 'replication is a number' "$holdfast" setup -u "$url&replication=many"
check "setup creates keyspace and tables" says 0 'is ready' "$holdfast" setup -u "$url&replication=1&op_timeout=60s"
check "nonsense is refused beside a keyspace too" says 64 'replication is a number' "$holdfast" setup -u "$url&replication=many"
check "setup once more changes nothing" says 0 'is ready' "$holdfast" setup -u "$url&op_timeout=60s"
check "a lock" "$holdfast" run -u "$url" a -- true
check "doctor tells the version" says 0 'is Cassandra 5' "$holdfast" doctor -u "$url"
check "doctor tells the Paxos variant" says 0 'paxos_variant is v2' "$holdfast" doctor -u "$url"
check "doctor says nothing of a commit log that is synced" not says 0 'commitlog_sync is periodic' "$holdfast" doctor -u "$url"
check "doctor warns of one replica" says 0 'has 1 replica: no lock can be had while' "$holdfast" doctor -u "$url"
check "doctor says what removes names that nobody uses" says 0 'holdfast gc' "$holdfast" doctor -u "$url"
check "doctor reads at SERIAL" says 0 'linearizable reads (SERIAL) work' "$holdfast" doctor -u "$url"
check "a wrong password is refused" says 69 'password' "$holdfast" run -u "cassandra://cassandra:wrong@$node/locks?$tls" a -- true
check "no account is refused" says 69 '' "$holdfast" run -u "cassandra://$node/locks?$tls" a -- true
check "a certificate nobody vouches for is refused" says 69 '' "$holdfast" run -u "cassandra://cassandra:cassandra@$node/locks?tls=verify" a -- true
check "a name that is not text is shown" sh -c "\"$holdfast\" lock -u '$url' --ttl 60 \"\$(printf 'b\\377c')\" && \"$holdfast\" ls -u '$url' | grep -q 'b%FFc'"
check "gc removes what is idle" until_true says 0 'removed [1-9]' "$holdfast" gc -u "$url" --retain 1s
check "and nothing else" sh -c "\"$holdfast\" ls -u '$url' | grep -q 'b%FFc'"

restart() {
    kill -KILL "$(cat "$dir/1/pid")"
    sh "$dir/1/start" </dev/null >>"$dir/1/log" 2>&1 &
    echo $! >"$dir/1/pid"
    until_true is_listening_again
}
is_listening_again() {
    [ "$(grep -c 'Starting listening for CQL clients' "$dir/1/log")" -eq 2 ]
}
check "a lock that never expires" "$holdfast" lock -u "$url" --never-expires kept
check "the node is killed and comes back" restart
check "and still has the lock" says 0 'never expires' "$holdfast" show -u "$url" kept
exit "$failed"
