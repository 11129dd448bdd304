#!/bin/sh
# Three servers, of which some stop, die or come back. shellcheck disable=SC2317
# shellcheck disable=SC1091,SC2154
. "$(dirname "$0")/lib.sh"

dir=${HOLDFAST_TEST_ETCD_DIR:-}

pid_of() {
    cat "$HOLDFAST_TEST_ETCD_DIR/$1.pid"
}

port_of() {
    echo "$HOLDFAST_TEST_ETCD" | cut -d, -f"${1#e}"
}

leader() {
    for member in e1 e2 e3; do
        status=$(gateway maintenance/status '{}' "$(port_of "$member")" 2>/dev/null) || continue
        [ "$(echo "$status" | jq -r .leader)" = "$(echo "$status" | jq -r .header.member_id)" ] &&
            echo "$member" && return
    done
    return 1
}

has_leader() {
    leader >/dev/null
}

# kill -9, and start the same command again on the same data.
murder() {
    tr '\0' '\n' <"/proc/$(pid_of "$1")/cmdline" >"$HOLDFAST_TEST_ETCD_DIR/$1.cmd"
    kill -KILL "$(pid_of "$1")"
}

revive() {
    set --  "$1"
    member=$1
    set --
    while read -r word; do
        set -- "$@" "$word"
    done <"$HOLDFAST_TEST_ETCD_DIR/$member.cmd"
    ( # not a job of this test, which ends with it
        "$@" </dev/null >>"$HOLDFAST_TEST_ETCD_DIR/$member.log" 2>&1 &
        echo $! >"$HOLDFAST_TEST_ETCD_DIR/$member.pid"
    )
}

whole() {
    for member in e1 e2 e3; do
        gateway kv/range '{"key":"AA=="}' "$(port_of "$member")" >/dev/null 2>&1 || return 1
    done
}

test_leader_killed_while_a_lock_is_held() {
    use_etcd test
    hold held-through --ttl 6s
    victim=$(leader)
    murder "$victim"
    eventually has_leader
    eventually busy held-through
    sleep 7 # longer than the lease: it was renewed by the new leader
    busy held-through
    kill -0 "$held_pid"
    let_go
    [ "$code" -eq 0 ]
    eventually free held-through
    revive "$victim"
    eventually whole
}

test_minority_refuses_and_its_holder_is_lost_in_time() {
    use_etcd test
    alone=$(leader)
    all=$HOLDFAST_URL
    HOLDFAST_URL="etcd://$(port_of "$alone")/test?op_timeout=1s"
    export HOLDFAST_URL
    hold cut-off --ttl 3s
    for member in e1 e2 e3; do
        [ "$member" = "$alone" ] || kill -STOP "$(pid_of "$member")"
    done
    code=0
    wait "$held_pid" || code=$? # by its own clock, with nobody to tell it
    hf run -n other -- true
    for member in e1 e2 e3; do
        kill -CONT "$(pid_of "$member")"
    done
    [ "$code" -eq 80 ]
    [ "$status" -eq 69 ] || [ "$status" -eq 75 ]
    HOLDFAST_URL=$all
    eventually whole
    eventually free cut-off
    eventually free other
}

test_one_server_down_is_passed_over() {
    use_etcd test
    kill -STOP "$(pid_of e1)"
    code=0
    "$HOLDFAST" run -w 20 passed -- true || code=$?
    kill -CONT "$(pid_of e1)"
    [ "$code" -eq 0 ]
    eventually whole
}

test_all_servers_restarted() {
    use_etcd test
    hf lock --never-expires for-ever
    status_is 0
    hf show --json for-ever
    ticket=$(jq -r '.holders[0].ticket' out)
    before=$(jq -r '.holders[0].generation' out)
    for member in e1 e2 e3; do
        murder "$member"
    done
    hf run -n for-ever -- true
    [ "$status" -ne 0 ]
    for member in e1 e2 e3; do
        revive "$member"
    done
    eventually whole
    eventually busy for-ever
    hf show --json for-ever
    [ "$(jq -r '.holders[0].generation' out)" = "$before" ]
    hf unlock --ticket "$ticket" for-ever
    status_is 0
    # shellcheck disable=SC2016 # for the child
    "$HOLDFAST" run for-ever -- sh -c 'echo $HOLDFAST_TOKEN >after'
    [ "$(cat after)" -gt "$before" ]
}

test_stopped_holder_is_succeeded_and_knows_when_it_wakes() {
    use_etcd test
    hold frozen --ttl 2s
    kill -STOP "$held_pid"
    code=0
    "$HOLDFAST" run -w 20 frozen -- true || code=$?
    kill -CONT "$held_pid"
    [ "$code" -eq 0 ]
    wait "$held_pid" || code=$?
    [ "$code" -eq 80 ]
}

# The client's own account of the lease ends before the store can be reached again, and a new leader starts every lease
# anew: the lock comes free in time only if the client still goes on with its release.
test_release_that_nobody_answers_goes_on() {
    use_etcd test
    mkfifo steps answers
    "$HOLDER" "$HOLDFAST_URL?op_timeout=1s" <steps >answers &
    holder=$!
    exec 3>steps 4<answers
    echo "take undone 20000" >&3
    read -r answer <&4
    case $answer in ok*) ;; *) false ;; esac
    murder e1 # not stopped: what is sent to one that is stopped arrives later
    murder e2
    echo "free undone" >&3
    read -r answer <&4
    sleep 26 # a try that failed after that time would have been the last
    revive e1 3>&- 4<&- # or the holder would see no end
    revive e2 3>&- 4<&-
    case $answer in failed*) ;; *) false ;; esac
    eventually whole
    "$HOLDFAST" run -w 12s undone -- true
    exec 3>&- 4<&-
    wait "$holder"
}

. "$(dirname "$0")/../cli/harness.sh"
