# shellcheck shell=sh
# etcd servers for tests; sourced after fleet.sh. The data is thrown away, so nothing is synced, unless
# HOLDFAST_TEST_FSYNC is "on".
# ETCD=path runs another server than the one installed, and HOLDFAST_TEST_ETCD_VERSION=3.7.3 one that is built once, from
# its Go modules.
if [ -n "${HOLDFAST_TEST_ETCD_VERSION-}" ]; then
    # shellcheck source=tests/fleet/fetch.sh
    # shellcheck disable=SC2154 # set by who sources this
    . "$here/fetch.sh"
    fleet_once "etcd-$HOLDFAST_TEST_ETCD_VERSION" fetch_go go.etcd.io/etcd/server/v3 "$HOLDFAST_TEST_ETCD_VERSION" etcd
    ETCD=$fetched/etcd
    export ETCD
fi
etcd_program=${ETCD:-etcd}

# etcd_answers HOST:PORT
etcd_answers() {
    curl -fsS --noproxy '*' -m 1 "http://$1/health" | grep -q '"true"'
}

# etcd_start NAME [OPTION...]: (again) one server that etcd_plan has given ports; sets etcd_pid.
etcd_start() {
    name=$1
    shift
    eval "client=\$etcd_client_$name peer=\$etcd_peer_$name"
    [ "${HOLDFAST_TEST_FSYNC:-off}" = on ] || set -- --unsafe-no-fsync "$@"
    # shellcheck disable=SC2154 # set by eval
    "$etcd_program" --name "$name" --data-dir "$fleet_dir/$name" \
        --listen-client-urls "http://127.0.0.1:$client" \
        --advertise-client-urls "http://127.0.0.1:$client" \
        --listen-peer-urls "http://127.0.0.1:$peer" \
        --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
        --initial-cluster "$etcd_cluster" --initial-cluster-token "$fleet_dir" \
        --heartbeat-interval 100 --election-timeout "$etcd_election" --log-level error \
        "$@" </dev/null >>"$fleet_dir/$name.log" 2>&1 &
    etcd_pid=$!
    fleet_pids="$fleet_pids $etcd_pid"
}

# etcd_plan ELECTION-MS NAME...: ports for the members of a cluster.
etcd_plan() {
    command -v "$etcd_program" >/dev/null 2>&1 || fleet_skip "$etcd_program is not installed"
    command -v curl >/dev/null 2>&1 || fleet_skip "curl is not installed"
    etcd_election=$1
    etcd_cluster=
    shift
    for name; do
        client=$(fleet_port)
        peer=$(fleet_port)
        eval "etcd_client_$name=$client etcd_peer_$name=$peer"
        etcd_cluster=$etcd_cluster${etcd_cluster:+,}$name=http://127.0.0.1:$peer
    done
}

# etcd_await NAME: until it answers, or the test cannot run.
etcd_await() {
    eval "client=\$etcd_client_$1"
    fleet_until etcd_answers "127.0.0.1:$client" && return
    cat "$fleet_dir/$1.log" >&2
    exit 69
}
