#!/bin/sh
# Servers that are restarted, killed and frozen under a crowd, one after the other. shellcheck disable=SC2317
# shellcheck disable=SC1091,SC2154
. "$(dirname "$0")/lib.sh"

fleet=${HOLDFAST_TEST_ETCD_DIR:-}

pid_of() {
    cat "$fleet/$1.pid"
}

is_gone() {
    ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status"
}

answers() {
    gateway kv/range '{"key":"AA=="}' "$(echo "$HOLDFAST_TEST_ETCD" | cut -d, -f"${1#e}")" >/dev/null 2>&1
}

# A server that comes back beside a crowd takes its time.
in_a_minute() {
    for _ in $(seq 300); do
        ! "$@" || return 0
        sleep 0.2
    done
    fail "did not come true: $* ($(tail -n 3 "$fleet"/e?.log))"
}

# again SIGNAL MEMBER: ends it and starts it again, on the same data.
again() {
    pid=$(pid_of "$2")
    back=$2
    tr '\0' '\n' <"/proc/$pid/cmdline" >"$fleet/$back.cmd"
    kill "-$1" "$pid"
    eventually is_gone "$pid"
    set --
    while read -r word; do
        set -- "$@" "$word"
    done <"$fleet/$back.cmd"
    ( # not a job of this test, which ends with it
        "$@" </dev/null >>"$fleet/$back.log" 2>&1 &
        echo $! >"$fleet/$back.pid"
    )
    in_a_minute answers "$back"
}

freeze() {
    kill -STOP "$(pid_of "$1")"
    sleep 3
    kill -CONT "$(pid_of "$1")"
    in_a_minute answers "$1"
}

# Twelve threads of four clients want four locks meanwhile.
test_servers_are_stopped_killed_and_frozen_under_a_crowd() {
    "$STORM" "etcd://$HOLDFAST_TEST_ETCD/test?op_timeout=10s" 4 12 4 40 >out &
    storm_pid=$!
    for member in e1 e2 e3; do
        again TERM "$member"
        again KILL "$member"
        freeze "$member"
    done
    wait "$storm_pid" || fail "it was held twice, or a token went back"
    cat out
}

. "$(dirname "$0")/../cli/harness.sh"
