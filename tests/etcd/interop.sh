#!/bin/sh
# The same locks with etcdctl lock and the v3lock service, both ways. shellcheck disable=SC2317
# shellcheck disable=SC1091,SC2154
. "$(dirname "$0")/lib.sh"

# they_hold NAME: in the background until `over` is there. $theirs.
they_hold() {
    ctl lock -- "$1" sh -c 'touch theirs; until [ -e over ]; do sleep 0.02; done' &
    theirs=$!
    eventually test -e theirs
}

test_etcdctl_waits_for_us() {
    use_etcd
    hold mutex-a
    ctl lock -- mutex-a touch theirs &
    theirs=$!
    eventually count_is mutex-a 2
    absent theirs
    let_go
    wait "$theirs"
    exists theirs
    nothing_left
}

test_etcdctl_waits_for_our_readers() {
    use_etcd
    hold mutex-b --shared
    ctl lock -- mutex-b touch theirs &
    theirs=$!
    eventually count_is mutex-b 2
    absent theirs
    let_go
    wait "$theirs"
    exists theirs
}

test_we_wait_for_etcdctl_and_show_it() {
    use_etcd
    they_hold mutex-c
    busy mutex-c
    hf show --json mutex-c
    status_is 0
    out_has '"place": *"inside"'
    "$HOLDFAST" run mutex-c -- touch ours &
    ours=$!
    eventually count_is mutex-c 2
    absent ours
    touch over
    wait "$theirs"
    wait "$ours"
    exists ours
}

test_our_reader_waits_for_etcdctl() {
    use_etcd
    they_hold mutex-d
    code=0
    "$HOLDFAST" run -n --shared mutex-d -- true || code=$?
    [ "$code" -eq 1 ]
    touch over
    wait "$theirs"
    free mutex-d
}

test_order_is_kept_across_both() {
    use_etcd
    hold mutex-e
    ctl lock -- mutex-e sh -c 'echo theirs >>order' &
    first=$!
    eventually count_is mutex-e 2
    "$HOLDFAST" run mutex-e -- sh -c 'echo ours >>order' &
    second=$!
    eventually count_is mutex-e 3
    let_go
    wait "$first"
    wait "$second"
    [ "$(tr '\n' ' ' <order)" = 'theirs ours ' ]
}

test_crashed_etcdctl_is_succeeded() {
    use_etcd
    # The client dies without a word; its session ends by its lease.
    # shellcheck disable=SC2016 # for the child: its parent is the client
    ctl lock --ttl 2 -- mutex-f sh -c 'echo $PPID >theirs; exec sleep 60' >/dev/null 2>&1 &
    eventually test -s theirs
    kill -KILL "$(cat theirs)"
    "$HOLDFAST" run -w 20 mutex-f -- touch ours
    exists ours
}

test_crashed_holder_of_ours_is_succeeded_by_etcdctl() {
    use_etcd
    hold mutex-g --ttl 2s
    kill -KILL "$held_pid"
    touch go
    ctl lock -- mutex-g touch theirs
    exists theirs
}

test_v3lock_waits_for_us_and_we_for_it() {
    use_etcd
    lease=$(gateway lease/grant '{"TTL":"60"}' | jq -r .ID)
    hold mutex-h
    gateway lock/lock "{\"name\":\"$(b64 mutex-h)\",\"lease\":\"$lease\"}" >theirs &
    theirs=$!
    eventually count_is mutex-h 2
    [ ! -s theirs ]
    let_go
    wait "$theirs"
    key=$(jq -r .key theirs)
    busy mutex-h
    gateway lock/unlock "{\"key\":\"$key\"}" >/dev/null
    free mutex-h
    gateway lease/revoke "{\"ID\":\"$lease\"}" >/dev/null
}

test_stranger_is_broken_by_the_ticket_it_is_shown_with() {
    use_etcd
    lease=$(gateway lease/grant '{"TTL":"60"}' | jq -r .ID)
    gateway lock/lock "{\"name\":\"$(b64 mutex-i)\",\"lease\":\"$lease\"}" >theirs
    busy mutex-i
    hf show --json mutex-i
    ticket=$(jq -r '.holders[0].ticket' out)
    hf break --ticket "$ticket" mutex-i
    status_is 64
    err_has 'cannot be asked to leave'
    busy mutex-i
    hf break --now --ticket "$ticket" mutex-i
    status_is 0
    free mutex-i
    gateway lease/revoke "{\"ID\":\"$lease\"}" >/dev/null
}

test_tokens_rise_across_both() {
    use_etcd
    # shellcheck disable=SC2016 # for the child
    "$HOLDFAST" run mutex-j -- sh -c 'echo $HOLDFAST_TOKEN >t1'
    # shellcheck disable=SC2016
    ctl lock -- mutex-j sh -c 'echo $ETCD_LOCK_REV >t2'
    # shellcheck disable=SC2016
    "$HOLDFAST" run mutex-j -- sh -c 'echo $HOLDFAST_TOKEN >t3'
    [ "$(cat t1)" -lt "$(cat t2)" ] && [ "$(cat t2)" -lt "$(cat t3)" ]
}

test_slash_in_a_name_does_not_nest() {
    use_etcd
    hold a/b
    free a
    ctl lock -- a true
    let_go
}

test_prefix_of_the_url_is_in_front() {
    use_etcd locks/of
    hold mutex-k
    gateway kv/range "{\"key\":\"$(b64 locks/of/mutex-k/write/)\",\"range_end\":\"$(b64 locks/of/mutex-k/write0)\"}" |
        jq -e '.count == "1"' >/dev/null
    let_go
}

. "$(dirname "$0")/../cli/harness.sh"
