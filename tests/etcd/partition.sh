#!/bin/sh
# A cluster whose network is cut: see tests/fleet/with-etcd-apart. shellcheck disable=SC2317
# shellcheck disable=SC1091,SC2154
. "$(dirname "$0")/lib.sh"

everywhere="etcd://10.77.0.1,10.77.0.2,10.77.0.3/test?tls=off&op_timeout=2s"

leader() {
    for i in 1 2 3; do
        status=$(gateway maintenance/status '{}' "10.77.0.$i:2379" 2>/dev/null) || continue
        [ "$(echo "$status" | jq -r .leader)" = "$(echo "$status" | jq -r .header.member_id)" ] &&
            echo "$i" && return
    done
    return 1
}

part() {
    ip link set "server$1" down
}

join() {
    ip link set "server$1" up
}

whole() {
    for i in 1 2 3; do
        gateway kv/range '{"key":"AA=="}' "10.77.0.$i:2379" >/dev/null 2>&1 || return 1
    done
}

# A shell on the side of one server, which it knows alone.
beside() {
    i=$1
    shift
    HOLDFAST_URL="etcd://10.77.0.$i/test?tls=off&op_timeout=2s" \
        nsenter -t "$(echo "$HOLDFAST_TEST_ETCD_NETS" | cut -d' ' -f"$i")" -n "$@"
}

# The cut-off server was the leader: it believes in itself for a while, and so might its holder.
test_minority_refuses_and_its_holder_is_lost_before_the_next_enters() {
    eventually whole
    alone=$(leader)
    HOLDFAST_URL=$everywhere
    export HOLDFAST_URL
    # shellcheck disable=SC2016 # for the child
    beside "$alone" "$HOLDFAST" run --ttl 3s parted -- \
        sh -c 'echo $HOLDFAST_TOKEN >before; trap "" TERM; while :; do date +%s%N >now && mv now alive; sleep 0.02; done' \
        >hold.out 2>hold.err &
    held_pid=$!
    eventually test -s before
    eventually test -s alive
    part "$alone"
    code=0
    beside "$alone" "$HOLDFAST" run -n other -- true 2>refused || code=$?
    [ "$code" -eq 69 ] || [ "$code" -eq 75 ] || fail "the minority gave a lock: $code"
    # The majority lets the next one in, when the holder's child is dead.
    # shellcheck disable=SC2016 # for the child
    "$HOLDFAST" run -w 30 parted -- sh -c 'date +%s%N >entered; echo $HOLDFAST_TOKEN >after'
    code=0
    wait "$held_pid" || code=$?
    join "$alone"
    [ "$code" -eq 80 ] || fail "the holder ended with $code"
    [ "$(cat alive)" -lt "$(cat entered)" ] || fail "two were inside"
    [ "$(cat after)" -gt "$(cat before)" ]
    eventually whole
    eventually free parted
    eventually free other
}

test_waiter_of_a_server_that_is_cut_off_is_woken_through_another() {
    eventually whole
    HOLDFAST_URL=$everywhere
    export HOLDFAST_URL
    hold woken --ttl 30s
    "$HOLDFAST" run -w 60 woken -- touch second &
    second=$!
    eventually waits woken
    others="10.77.0.2:2379 10.77.0.3:2379"
    # shellcheck disable=SC2086 # words
    before=$(answered LeaseKeepAlive $others)
    part 1 # the first of the list, where the waiter has its watch
    # shellcheck disable=SC2086 # words
    eventually more_answered "$before" LeaseKeepAlive $others
    let_go
    [ "$code" -eq 0 ] || fail "the holder ended with $code"
    wait "$second"
    exists second
    join 1
    eventually whole
}

waits() {
    "$HOLDFAST" show --json "$1" | grep -q '"place": *"waiting"'
}

test_cluster_that_falls_apart_lets_nobody_in_and_goes_on() {
    eventually whole
    HOLDFAST_URL=$everywhere
    export HOLDFAST_URL
    for i in 1 2 3; do
        part "$i"
    done
    hf run -n nobody -- true
    [ "$status" -eq 69 ] || [ "$status" -eq 75 ]
    for i in 1 2 3; do
        join "$i"
    done
    eventually whole
    eventually free nobody
}

. "$(dirname "$0")/../cli/harness.sh"
