# holdfast run: when the lock ends before the command does, and when the wrapper itself dies.
. "$(dirname "$0")/run_lib.sh"

# A command that ignores TERM, with a grandchild that does too and one that left the group.
stubborn='
trap "" TERM
echo $$ >leader
sh -c "echo \$\$ >grandchild; exec sleep 60" &
setsid sh -c "echo \$\$ >stray; exec sleep 60" &
until test -s grandchild && test -s stray; do sleep 0.01; done
echo ready >ready
while :; do sleep 0.05; done'

start_stubborn() {
    holdfast run "$@" x -- sh -c "$stubborn" 2>err &
    wrapper=$!
    eventually has_text ready ready
}

all_dead() {
    is_dead "$(cat leader)" && is_dead "$(cat grandchild)"
}

break_now() {
    holdfast break x --ticket "$(holder_ticket x)" --now
}

# Bids for the lock; the moment it is let in, it looks whether anybody of the former group is alive.
look_when_let_in() {
    holdfast run x -- sh -c '
        for who in leader grandchild; do
            kill -0 "$(cat $who)" 2>/dev/null && ! grep -q "^State:.Z" "/proc/$(cat $who)/status" && exit 9
        done
        exit 0'
}

test_c7_a_broken_lock_ends_the_group_with_80() {
    start_stubborn --ttl 2s --kill-after 200ms --status-fd 9 9>s
    break_now
    ended_with 80 $wrapper
    all_dead
    is_dead "$(cat stray)"
    grep -q 'sent signal 15' err
    grep -q 'killed' err
    grep -q '"lost":"gone".*"signal":9,"status":80,"status_of":"holdfast"' s
}

test_c7_the_signal_comes_first_and_may_be_heeded() {
    env --default-signal=INT "$HOLDFAST" run --ttl 2s --signal INT x -- sh -c 'trap "echo int >heard; exit 0" INT; echo r >ready; while :; do sleep 0.01; done' &
    wrapper=$!
    eventually has_text ready r
    break_now
    ended_with 80 $wrapper
    has_text heard int
}

test_c7_a_stopped_command_is_continued_to_die() {
    holdfast run --ttl 2s --on-lost term x -- sh -c 'trap "exit 0" TERM; echo $$ >leader; while :; do sleep 0.01; done' &
    wrapper=$!
    eventually has_text leader .
    kill -STOP "$(cat leader)"
    break_now
    ended_with 80 $wrapper
}

test_c7_a_loss_spares_what_was_there_before_the_command() {
    # The system tells when a process began in ticks of 10 ms: the helper's must be over.
    sh -c 'sleep 60 & echo $! >helper; sleep 0.1
        exec holdfast run --max-hold 100ms x -- sleep 60' && got=0 || got=$?
    [ "$got" -eq 80 ]
    not is_dead "$(cat helper)"
    kill "$(cat helper)"
}

test_c7_a_deleted_store_ends_the_group() {
    start_stubborn --ttl 2s --kill-after 200ms
    rm -rf store
    ended_with 80 $wrapper
    all_dead
}

test_c7_a_store_that_does_not_answer_ends_the_group_before_the_lease() {
    start_stubborn -u "fault+$HOLDFAST_URL?hang=renew:*" --ttl 1s --status-fd 9 9>s
    gives 0 look_when_let_in
    ended_with 80 $wrapper
    grep -q '"lost":"expired".*"signal":9,"status":80' s
}

test_c7_what_kept_a_lease_from_being_renewed_is_told() {
    for quiet in '' -q; do
        # shellcheck disable=SC2086
        gives 80 holdfast -u "fault+$HOLDFAST_URL?fail=renew:*" run $quiet --ttl 1s --status-fd 9 x -- sleep 60 9>s 2>err
        grep -q "'x' is given up: the lease could not be renewed in time: made to fail; the command was sent signal 15" err
        jq -e '.lost == "expired" and .error == "made to fail"' s
        early=$(grep -c "^holdfast: 'x' could not be renewed yet: made to fail; its lease ends in 0\.[0-9] s\$" err) || :
        [ "$early" -eq "$([ "$quiet" ] && echo 0 || echo 1)" ] || fail "said it $early times"
    done
}

test_c6_a_release_of_unknown_outcome_keeps_the_commands_status() {
    gives 3 holdfast run -u "fault+$HOLDFAST_URL?hang=release:*&op_timeout=200ms" --ttl 1m \
        --status-fd 9 x -- sh -c 'exit 3' 9>s 2>err
    grep -q 'may not have been released, and the lock may be held for up to 5[0-9]s' err
    grep -q '"release":"HF_UNKNOWN".*"status":3,"status_of":"command"' s
}

test_c6_a_short_outage_at_the_end_leaves_nothing() {
    gives 3 holdfast run -u "fault+$HOLDFAST_URL?fail=release:1-4" --ttl 1m --status-fd 9 x -- sh -c 'exit 3' \
        9>s 2>err
    [ ! -s err ] || fail "said: $(cat err)"
    grep -q '"release":"HF_OK","may_hold_ms":null' s
    ! "$HOLDFAST" show -q x || fail "it is still held"
}

test_c6_a_bid_of_unknown_outcome_is_75() {
    gives 75 holdfast run -u "fault+$HOLDFAST_URL?hang=*:*&op_timeout=200ms" --status-fd 9 x touch wrong \
        2>err 9>s
    grep -q 'the outcome is not known, and the lock may be held for up to [0-9]*[sm]' err
    jq -e '.may_hold_ms > 1000 and .obtained == false and .status == 75' s
    gives 69 holdfast run -u "fault+$HOLDFAST_URL?fail=*:*&op_timeout=200ms" x touch wrong
    not test -e wrong
}

test_on_lost_term_does_not_kill() {
    holdfast run --ttl 1s --kill-after 100ms --on-lost term --status-fd 9 x -- sh -c '
        trap "echo term >heard" TERM; echo r >ready
        until test -e heard; do sleep 0.01; done; until test -e go; do sleep 0.01; done; exit 4' 9>s &
    wrapper=$!
    eventually has_text ready r
    break_now
    eventually has_text heard term
    holdfast run x true
    : >go
    ended_with 80 $wrapper
    grep -q '"exit":4' s
}

test_on_lost_ignore_only_says_so() {
    began=$(date +%s%3N)
    holdfast run --ttl 1s --on-lost ignore --status-fd 9 x -- sh -c '
        trap "echo term >heard" TERM; echo r >ready; until test -e go; do sleep 0.01; done; exit 4' 9>s 2>err &
    wrapper=$!
    eventually has_text ready r
    break_now
    eventually has_text err 'lost'
    lost=$(date +%s%3N)
    sleep 1 # the command goes on without the lock: TERM would come now, and held_ms would grow
    : >go
    ended_with 4 $wrapper
    not test -e heard
    grep -q '"lost":"gone".*"exit":4.*"status":4,"status_of":"command"' s
    # It was not held after the loss, however long the command went on.
    jq -e ".held_ms <= $lost - $began" s
}

test_c13_a_wrapper_stopped_past_its_lease_kills_when_it_wakes() {
    start_stubborn --ttl 1s
    kill -STOP $wrapper
    holdfast run x touch in
    test -e in
    kill -CONT $wrapper
    ended_with 80 $wrapper
    all_dead
    not grep -q 'sent signal' err
}

test_c13_a_guard_kills_in_time_while_the_wrapper_is_stopped() {
    start_stubborn --ttl 1s --guard
    kill -STOP $wrapper
    gives 0 look_when_let_in
    kill -CONT $wrapper
    ended_with 80 $wrapper
}

test_a_guard_kills_the_group_when_the_wrapper_is_killed() {
    start_stubborn --ttl 1s --guard
    kill -KILL $wrapper
    eventually all_dead
    gives 0 look_when_let_in
    kill -KILL "$(cat stray)"
}

test_a_guard_leaves_with_the_wrapper() {
    gives 3 holdfast run --guard x -- sh -c 'ps -o pid=,comm= --ppid $PPID >family; exit 3'
    guard=$(sed -n 's/^ *\([0-9]*\) holdfast-guard.*/\1/p' family)
    test -n "$guard"
    is_dead "$guard"
}

test_a_guard_holds_no_descriptor() {
    # If the guard held the pipe's end, cat would wait for it.
    holdfast run --guard --ttl 1s x -- sh -c '
        guard=$(ps -o pid=,comm= --ppid $PPID | sed -n "s/^ *\([0-9]*\) holdfast-guard.*/\1/p")
        ls /proc/$guard/fd' 9<. | tr '\n' ' ' >fds
    [ "$(cat fds)" = "0 1 " ]
}

test_the_direct_child_dies_with_a_killed_wrapper() {
    holdfast run --ttl 1s x -- sh -c 'echo $$ >leader; while :; do sleep 0.05; done' &
    wrapper=$!
    eventually has_text leader .
    kill -KILL $wrapper
    eventually is_dead "$(cat leader)"
}

test_max_hold_ends_the_command_with_80() {
    gives 80 holdfast run --max-hold 100ms --status-fd 9 x sleep 60 9>s
    grep -q '"lost":"max-hold","error":null,"release":"HF_OK".*"signal":15,"status":80' s
    gives 80 holdfast run --max-hold 100ms --kill-after 100ms x -- sh -c 'trap "" TERM; while :; do sleep 0.05; done'
    gives 80 holdfast run --never-expires --max-hold 100ms x sleep 60
    is_free
    gives 0 holdfast run --max-hold 1h x true
}

test_a_lock_that_never_expires_is_released_at_the_end() {
    gives 3 holdfast run --never-expires x -- sh -c 'holdfast show --json x >shown; exit 3'
    grep -q '"name":"x"' shown
    is_free
}

test_c8_a_lock_delay_follows_a_killed_wrapper_only() {
    gives 0 holdfast run --lock-delay 1h x true
    is_free
    holdfast run --ttl 200ms --lock-delay 1h x -- sh -c 'echo $$ >leader; exec sleep 60' &
    wrapper=$!
    eventually has_text leader .
    kill -KILL $wrapper
    eventually is_dead "$(cat leader)"
    gives 1 holdfast run -q -w 500ms x true
}

test_a_full_or_deaf_stderr_does_not_keep_the_command_alive() {
    mkfifo deaf
    # shellcheck disable=SC2217 # only to hold it open
    sleep 60 <deaf &
    reader=$!
    {
        # Fills the pipe until it takes no more, by an opening of its own: ours must stay blocking.
        dd if=/dev/zero of=deaf bs=4096 count=64 oflag=nonblock conv=notrunc 2>/dev/null || :
        gives 80 holdfast run --max-hold 100ms --kill-after 100ms x -- sh -c 'trap "" TERM; while :; do sleep 0.05; done' 2>&1
        echo ended >ended
    } >deaf
    kill $reader
    has_text ended ended
}

. "$(dirname "$0")/harness.sh"
