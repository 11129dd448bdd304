# shellcheck shell=sh
# What the shell tests of the etcd store share. The servers are those of tests/fleet/with-etcd*.

ETCDCTL_API=3
export ETCDCTL_API

ctl() {
    timeout 20 etcdctl --endpoints "$HOLDFAST_TEST_ETCD" "$@"
}

# gateway PATH BODY [PORT]: one bare request.
gateway() {
    curl -fsS --noproxy '*' -m 5 "http://${3:-${HOLDFAST_TEST_ETCD%%,*}}/v3/$1" -d "$2"
}

b64() {
    printf %s "$1" | base64 -w0
}

use_etcd() {
    HOLDFAST_URL=etcd://$HOLDFAST_TEST_ETCD/${1-}
    export HOLDFAST_URL
}

# busy NAME: somebody has it. free NAME: nobody has.
busy() {
    code=0
    "$HOLDFAST" run -n "$1" -- true 2>/dev/null || code=$?
    [ "$code" -eq 1 ]
}
free() {
    "$HOLDFAST" run -n "$1" -- true 2>/dev/null
}

# count_is NAME COUNT: so many stand in its queue, of whatever client; whoever is inside is the first of them.
count_is() {
    [ "$(gateway kv/range "{\"key\":\"$(b64 "$1/")\",\"range_end\":\"$(b64 "${1}0")\"}" |
        jq -r '.count // "0"')" -eq "$2" ]
}

# hold NAME OPTION...: in the background until `go` is there; `held` says that it is inside. $held_pid.
hold() {
    name=$1
    shift
    rm -f held go
    "$HOLDFAST" run "$@" "$name" -- sh -c 'touch held; until [ -e go ]; do sleep 0.02; done' \
        >hold.out 2>hold.err &
    held_pid=$!
    eventually test -e held
}

let_go() {
    touch go
    code=0
    wait "$held_pid" || code=$?
}

# answered METHOD ADDRESS...: how many such requests these servers have answered well. more_answered BEFORE ...:
# whether there are more of them now.
answered() {
    method=$1
    shift
    for at; do
        curl -fsS --noproxy '*' -m 5 "http://$at/metrics"
    done | awk -v wanted="grpc_method=\"$method\"" '
        /^grpc_server_handled_total/ && /grpc_code="OK"/ && index($0, wanted) { sum += $2 }
        END { print sum + 0 }'
}
more_answered() {
    before=$1
    shift
    [ "$(answered "$@")" -gt "$before" ]
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# start_server SCHEME OPTION...: a server of this test's own; $address, $server_pid.
start_server() {
    scheme=$1
    shift
    port=$(free_port)
    peer=$(free_port)
    address=127.0.0.1:$port
    "${ETCD:-etcd}" --name t --data-dir "$PWD/data" --listen-client-urls "$scheme://$address" \
        --advertise-client-urls "$scheme://$address" --listen-peer-urls "http://127.0.0.1:$peer" \
        --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
        --initial-cluster "t=http://127.0.0.1:$peer" --log-level error --unsafe-no-fsync "$@" \
        </dev/null >server.log 2>&1 &
    # shellcheck disable=SC2034 # for those who source this
    server_pid=$!
    eventually nc_listens "$port"
}

# add_root: the first account of this server, with the password rootword; $plain asks without one.
add_root() {
    plain="etcdctl --endpoints $address"
    $plain user add root --new-user-password=rootword >/dev/null
    $plain user grant-role root root >/dev/null 2>&1 || { $plain role add root && $plain user grant-role root root; } >/dev/null
}

nc_listens() {
    python3 -c "import socket; socket.create_connection(('127.0.0.1', $1), 1)" 2>/dev/null
}
