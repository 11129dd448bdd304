#!/bin/sh
# The same locks with the Go package concurrency and its RWMutex, both ways. shellcheck disable=SC2317
# shellcheck disable=SC1091,SC2154
. "$(dirname "$0")/lib.sh"

command -v go >/dev/null 2>&1 || {
    echo "SKIPPED: go is not installed" >&2
    exit 77
}
contender=$HOLDFAST_TEST_ETCD_DIR/contender
(cd "$(dirname "$0")/go" && go build -o "$contender" . 2>"$contender.log") || {
    echo "SKIPPED: the Go client cannot be built: $(tail -n 1 "$contender.log")" >&2
    exit 77
}

# theirs HOW NAME [TTL]: in the background until `over` is there; the file theirs says that it is inside.
theirs() {
    rm -f over
    : >theirs
    until [ -e over ]; do sleep 0.02; done | "$contender" "${HOLDFAST_TEST_ETCD%%,*}" "$1" "$2" "${3:-60}" >theirs &
    theirs_pid=$!
}

inside() {
    [ -s theirs ]
}

test_mutex_waits_for_us_and_we_for_it() {
    use_etcd
    hold go-a
    theirs lock go-a
    eventually count_is go-a 2
    [ ! -s theirs ]
    let_go
    eventually inside
    busy go-a
    touch over
    wait "$theirs_pid"
    free go-a
}

test_try_lock_is_refused_while_we_hold() {
    use_etcd
    hold go-b
    touch over
    code=0
    "$contender" "${HOLDFAST_TEST_ETCD%%,*}" trylock go-b 10 </dev/null >theirs 2>err || code=$?
    [ "$code" -ne 0 ]
    err_has 'mutex: Locked by another session'
    let_go
    "$contender" "${HOLDFAST_TEST_ETCD%%,*}" trylock go-b 10 </dev/null >theirs
    inside
}

test_tokens_rise_across_both() {
    use_etcd
    # shellcheck disable=SC2016 # for the child
    "$HOLDFAST" run go-c -- sh -c 'echo $HOLDFAST_TOKEN >t1'
    "$contender" "${HOLDFAST_TEST_ETCD%%,*}" lock go-c 10 </dev/null | cut -d' ' -f2 >t2
    # shellcheck disable=SC2016
    "$HOLDFAST" run go-c -- sh -c 'echo $HOLDFAST_TOKEN >t3'
    [ "$(cat t1)" -lt "$(cat t2)" ] && [ "$(cat t2)" -lt "$(cat t3)" ]
}

test_whoever_crashes_is_succeeded() {
    use_etcd
    mkfifo never
    "$contender" "${HOLDFAST_TEST_ETCD%%,*}" lock go-d 2 <>never >theirs &
    theirs_pid=$!
    eventually inside
    kill -KILL "$theirs_pid"
    "$HOLDFAST" run -w 20 go-d -- true
    hold go-d --ttl 2s
    kill -KILL "$held_pid"
    touch go
    "$contender" "${HOLDFAST_TEST_ETCD%%,*}" lock go-d 10 </dev/null >theirs
    inside
}

test_readers_of_rwmutex_enter_with_ours_and_writers_wait() {
    use_etcd
    hold go-e --shared
    theirs rlock go-e
    eventually inside
    "$HOLDFAST" run -n --shared go-e -- true
    let_go
    busy go-e # their reader excludes our writer
    touch over
    wait "$theirs_pid"
    free go-e
}

test_writer_of_rwmutex_waits_for_our_reader_and_we_for_it() {
    use_etcd
    hold go-f --shared
    theirs wlock go-f
    eventually count_is go-f 2
    [ ! -s theirs ]
    let_go
    eventually inside
    code=0
    "$HOLDFAST" run -n --shared go-f -- true || code=$?
    [ "$code" -eq 1 ]
    touch over
    wait "$theirs_pid"
    free go-f
}

. "$(dirname "$0")/../cli/harness.sh"
