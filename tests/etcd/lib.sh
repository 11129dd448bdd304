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
