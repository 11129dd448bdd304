# lock, unlock, renew: a lock that outlives the command.

test_lock_prints_what_is_needed_and_stays() {
    hf lock x --ttl 1m
    status_is 0
    err_is_empty
    out_has '^sequencer  hf1:x:[0-9]+::x$'
    out_has '^ticket     [0-9a-f]{32}$'
    out_has '^until      [0-9-]+T[0-9:]+Z, for '
    hf lock x -n --ttl 1m
    refused 1 "'x'.*somebody else holds it: held by .*, since "
}

test_lock_json() {
    hf lock x --ttl 1m --json
    status_is 0
    json '.[0] | .name == "x" and (.ticket | test("^[0-9a-f]{32}$")) and (.generation | type == "string")
          and (.remaining_ms > 50000) and (.until | test("Z$")) and (.sequencer | startswith("hf1:"))'
    hf lock y --never-expires --json
    json '.[0] | .remaining_ms == null and .until == null'
}

test_lock_needs_a_lease() {
    hf lock x
    refused 64 'needs either --ttl DUR or --never-expires'
    hf lock x --ttl 5s --never-expires
    refused 64 'needs either --ttl DUR or --never-expires'
    absent store/locks.db
}

test_lock_refuses_what_contradicts() {
    hf lock x --ttl 5s -s -x
    refused 64 'choose one of -x and -s'
    hf lock x --ttl 5s -n -w 5
    refused 64 'choose one of -n and -w'
    hf lock x --ttl 5s -x --limit 3
    refused 64 'choose one of -x and --limit'
}

test_lock_refuses_wrong_names() {
    hf lock '' --ttl 5s
    refused 64 '1 to 512 bytes, this one has 0'
    for len in 513 65536; do
        hf lock "$(printf "%0${len}d" 0)" --ttl 5s
        refused 64 "1 to 512 bytes, this one has $len"
    done
    hf lock x --ttl 5s --note "$(printf '%0257d' 0)"
    refused 64 'at most 256 bytes'
    absent store/locks.db
    hf lock "$(printf '%0512d' 0)" --ttl 5s
    status_is 0
}

test_lock_refuses_a_store_that_ends_with_it() {
    hf -u memory://x lock x --ttl 5s
    refused 64 'exclude nobody outside this process; use another store'
}

test_conflict_exit_code() {
    hf lock -q x --ttl 1m
    for wait in -n '-w 0' '-w 50ms'; do
        # shellcheck disable=SC2086
        hf lock x --ttl 1m $wait -E 9
        refused 9 'x'
        # shellcheck disable=SC2086
        hf lock x --ttl 1m $wait -q
        status_is 1
        err_is_empty
    done
    hf show x --json
    json '.[0].queue == []'
}

test_shared_and_limited() {
    hf lock -q -s r --ttl 1m
    hf lock -q -s r -n --ttl 1m
    status_is 0
    hf lock -q -x r -n --ttl 1m
    status_is 1
    hf lock -q --limit 2 l --ttl 1m
    hf lock -q --limit 2 l -n --ttl 1m
    status_is 0
    hf lock -q --limit 2 l -n --ttl 1m
    status_is 1
}

test_unlock_frees_it_once() {
    hf lock -q x --ttl 1m
    ticket=$(cat out)
    hf unlock x --ticket "$ticket"
    status_is 0
    out_is_empty
    err_is_empty
    nothing_left
    hf unlock x --ticket "$ticket"
    refused 1 'no longer, held by this ticket'
}

test_unlock_json() {
    hf lock -q x --never-expires
    ticket=$(cat out)
    hf unlock --json x --ticket "$ticket"
    status_is 0
    json ".[0] == {name: \"x\", ticket: \"$ticket\", released: true}"
}

test_tickets_are_checked() {
    hf lock -q x --ttl 1m
    for verb in unlock renew break; do
        hf "$verb" x
        refused 64 'needs --ticket'
        hf "$verb" x --ticket 123
        refused 64 "32 hexadecimal digits, not '123'"
        hf "$verb" x --ticket 00000000000000000000000000000000
        refused 1 "'x'"
    done
    hf lock x -nq --ttl 1m
    status_is 1
}

test_a_ticket_may_come_from_a_file_or_from_standard_input() {
    hf lock -q x --ttl 1m
    cp out ticket
    hf renew x --ticket-file ticket
    status_is 0
    out_has "^ticket     $(cat ticket)$"
    "$HOLDFAST" unlock x --ticket-file - <ticket
    nothing_left
    hf lock -q x --never-expires
    cp out ticket
    hf break x --ticket-file ticket
    status_is 0
    nothing_left
}

test_files_with_tickets_are_checked() {
    hf lock -q x --ttl 1m
    cp out ticket
    for verb in unlock renew break; do
        hf "$verb" x --ticket-file missing
        refused 64 "--ticket-file 'missing' cannot be read: No such file"
        hf "$verb" x --ticket-file - # /dev/null
        refused 64 "--ticket-file '-' has no first line"
        hf "$verb" x --ticket-file ticket --ticket "$(cat ticket)"
        refused 64 'choose one of --ticket and --ticket-file'
    done
    chmod 644 ticket
    hf unlock x --ticket-file ticket
    refused 64 "--ticket-file 'ticket' is open to others; run: chmod 600 ticket"
    echo "not one" >wrong
    hf unlock x --ticket-file wrong
    refused 64 '32 hexadecimal digits'
    lacks err 'not one'
}

test_the_wrong_ticket_changes_nothing() {
    hf lock -q x --ttl 1m
    hf lock -q y --ttl 1m
    ticket=$(cat out)
    hf unlock x --ticket "$ticket"
    refused 1 'no longer, held by this ticket'
    hf show -q x
    status_is 0
}

test_renew_restarts_the_lease() {
    hf lock -q x --ttl 1m
    ticket=$(cat out)
    hf renew x --ticket "$ticket"
    status_is 0
    out_has "^ticket     $ticket$"
    hf renew x --ticket "$ticket" --json
    json ".[0] | .ticket == \"$ticket\" and .remaining_ms > 50000"
    hf show x --json
    json '.[0].holders | length == 1'
}

test_renew_after_the_lease_is_refused() {
    hf lock -q x --ttl 100ms
    ticket=$(cat out)
    eventually is_free x
    hf renew x --ticket "$ticket"
    refused 1 'no longer, held by this ticket'
}

has_renewed() {
    [ "$(grep -c ' renew .* -> granted' trace)" -eq 2 ] # one learns of the lock, one claims it
}

# The lease ends while it waits for room to print what it has renewed.
test_a_lock_that_is_lost_during_the_renewal_is_80() {
    hf lock -q x --ttl 2s
    ticket=$(cat out)
    mkfifo pipe
    exec 3<>pipe
    dd if=/dev/zero of=pipe bs=4096 oflag=nonblock 2>/dev/null || : # until it is full
    "$HOLDFAST" -u "trace+$HOLDFAST_URL?trace=$dir/trace" renew x --ticket "$ticket" >pipe 2>err &
    pid=$!
    eventually has_renewed
    eventually is_free x
    dd if=pipe of=/dev/null bs=65536 count=1 2>/dev/null
    status=0
    wait "$pid" || status=$?
    last='renew of a lock that expires' : >out
    refused 80 'it was lost: the lease could not be renewed'
}

is_free() {
    ! "$HOLDFAST" show -q "$1"
}

waits_for() {
    "$HOLDFAST" show --json "$1" | jq -e '.queue | length > 0' >/dev/null
}

test_interrupted_wait_leaves_nothing() {
    for signal in INT TERM HUP; do
        hf lock -q x --never-expires
        ticket=$(cat out)
        # Not in the background of this shell, which would have SIGINT ignored.
        python3 -c 'import signal, os, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$HOLDFAST" lock x --ttl 1m >out 2>err &
        pid=$!
        eventually waits_for x
        kill -s "$signal" "$pid"
        status=0
        wait "$pid" || status=$?
        [ "$status" -gt 128 ]
        hf show x --json
        json '.[0].queue == [] and (.[0].holders | length == 1)'
        hf unlock x --ticket "$ticket"
    done
    nothing_left
}

test_a_waiter_gets_it_when_it_is_unlocked() {
    hf lock -q x --ttl 1m
    ticket=$(cat out)
    "$HOLDFAST" lock -q x --ttl 1m -w 30s >second 2>err &
    pid=$!
    eventually waits_for x
    hf unlock x --ticket "$ticket"
    status_is 0
    wait "$pid"
    hf show x --json
    json ".[0].holders[0].ticket == \"$(cat second)\" and .[0].holders[0].claimed"
}

test_a_lock_whose_ticket_cannot_be_printed_is_given_back() {
    status=0
    "$HOLDFAST" lock x --ttl 1m >/dev/full 2>err || status=$?
    last='lock >/dev/full' : >out
    refused 71 'cannot write the output'
    nothing_left
}

test_a_reader_that_has_gone_leaves_no_lock() {
    mkfifo pipe
    exec 3<>pipe 4>pipe 3<&-
    status=0
    "$HOLDFAST" lock x --never-expires >&4 2>err || status=$?
    exec 4>&-
    last='lock into a broken pipe' : >out
    refused 71 'cannot write the output: Broken pipe'
    nothing_left
}

# As systemd-nspawn does it, on the clock of the same kernel.
test_a_container_with_a_boot_id_of_its_own_ends_no_lease() {
    if [ "$(id -u)" -eq 0 ]; then apart='unshare -m'; else apart='unshare -rm'; fi
    echo 11111111-2222-3333-4444-555555555555 >boot_id
    as_container='mount --bind boot_id /proc/sys/kernel/random/boot_id && exec "$@"'
    $apart sh -c "$as_container" sh true 2>/dev/null || skip 'boot_id cannot be replaced here'
    hf lock x --ttl 1m
    status_is 0
    status=0
    $apart sh -c "$as_container" sh "$HOLDFAST" lock x --ttl 1m -n >out 2>err || status=$?
    last='lock in a container'
    refused 1 'somebody else holds it'
    hf lock x --ttl 1m -n
    status_is 1
}

test_unknown_outcome_has_its_own_status() {
    hf -u "fault+$HOLDFAST_URL?lose=attempt:*,inspect:*,withdraw:*&op_timeout=200ms" lock x --ttl 1s
    refused 75 'x'
}

test_store_that_fails_is_unavailable() {
    hf -u "fault+$HOLDFAST_URL?fail=attempt:*&op_timeout=200ms" lock x --ttl 1s
    refused 69 'x'
    nothing_left
}

. "$(dirname "$0")/harness.sh"
