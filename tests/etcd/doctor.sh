#!/bin/sh
# What doctor says of three servers, of a full one and of a user without rights. shellcheck disable=SC2317
# shellcheck disable=SC1091,SC2154
. "$(dirname "$0")/lib.sh"

test_three_members_a_leader_and_latency() {
    use_etcd test
    hf doctor
    status_is 0
    out_has '3 voting members, 3 of the URL.s 3 answer'
    out_has 'the leader is e[123]'
    [ "$(grep -c 'a read takes [0-9]* us' out)" -eq 3 ]
    out_has 'no alarm is raised'
    out_has 'the shortest lease is [0-9]+ s'
    out_has 'a change was told by a watch after [0-9]+ us'
    [ -z "$(ctl get --prefix --keys-only '')" ] || fail "it left something behind: $(ctl get --prefix --keys-only '')"
}

test_one_server_that_does_not_answer_is_named() {
    kill -STOP "$(cat "$HOLDFAST_TEST_ETCD_DIR/e3.pid")"
    use_etcd test?op_timeout=2s
    hf doctor
    kill -CONT "$(cat "$HOLDFAST_TEST_ETCD_DIR/e3.pid")"
    out_has '3 voting members, 2 of the URL.s 3 answer'
}

test_nobody_is_told_once() {
    hf -u etcd://127.0.0.1:1/test doctor
    [ "$(cat out err | grep -c 'etcd: http://127.0.0.1:1')" -eq 1 ] || fail "$(cat out err)"
    hf -u etcd:///test doctor
    refused 64 'name the servers'
}

test_setup_says_so_when_nobody_is_there() {
    hf -u etcd://127.0.0.1:1/test setup
    refused 69 127.0.0.1:1
    use_etcd test
    hf setup
    status_is 0
}

quota_is_used_up() {
    ! gateway kv/put "{\"key\":\"$(b64 fill)\",\"value\":\"$(head -c 90000 /dev/zero | base64 -w0)\"}" "$address" \
        >/dev/null 2>&1
}

test_quota_that_is_used_up_is_an_alarm_and_locks_are_refused() {
    start_server http --quota-backend-bytes 2000000
    eventually gateway kv/range '{"key":"AA=="}' "$address"
    HOLDFAST_URL=etcd://$address/test
    export HOLDFAST_URL
    hold kept --ttl 20s
    eventually quota_is_used_up
    hf doctor
    out_has 'alarm NOSPACE: the quota is used up'
    hf run -n other -- true
    status_is 69
    err_has 'space'
    let_go # what is held can be given back: deletions are not refused
    [ "$code" -eq 0 ] || fail "the holder ended with $code: $(cat hold.err)"
    gateway maintenance/alarm '{"action":"DEACTIVATE","alarm":"NOSPACE"}' "$address" >/dev/null
    kill "$server_pid"
}

test_user_without_the_right_to_write_is_told() {
    start_server http
    add_root
    $plain role add readers >/dev/null
    $plain role grant-permission readers --prefix=true read team/ >/dev/null
    $plain user add reader --new-user-password=w0rd >/dev/null
    $plain user grant-role reader readers >/dev/null
    $plain auth enable >/dev/null
    HOLDFAST_URL=etcd://reader:w0rd@$address/team hf doctor
    out_has 'may not write'
    HOLDFAST_URL=etcd://root:rootword@$address/team hf doctor
    out_has 'may read and write'
    kill "$server_pid"
}

. "$(dirname "$0")/../cli/harness.sh"
