# holdfast run: when the lock ends before the command does.
. "$(dirname "$0")/run_lib.sh"

break_now() {
    holdfast break x --ticket "$(holder_ticket x)" --now
}

test_c7_a_broken_lock_ends_the_group_with_80() {
    start_stubborn --ttl 2s --kill-after 200ms --status-fd 9 9>s
    break_now
    ended_with 80 $wrapper
    all_dead
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

# as_nobody CMD: without the right to signal what belongs to root. `helper` is set-user-ID root and
# runs until there is a file `go`.
make_setuid_helper() {
    [ "$(id -u)" -eq 0 ] || skip 'only root can make a set-user-ID program'
    command -v setpriv >/dev/null || skip 'there is no setpriv'
    cat >helper.c <<'END'
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    if (setresuid(0, 0, 0) != 0)
        return 1;
    FILE *f = fopen("ready", "w");
    fprintf(f, "%d\n", (int)getpid());
    fclose(f);
    while (access("go", F_OK) != 0 && access("helper.c", F_OK) == 0) /* until the test is over */
        usleep(10000);
    return 0;
}
END
    "${CC:-cc}" -o helper helper.c
    chmod 4755 helper
    chmod 755 .
    chown 65534 store
}

as_nobody() {
    setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

test_c7_a_command_that_may_not_be_killed_keeps_its_lock() {
    make_setuid_helper
    as_nobody "$HOLDFAST" run --ttl 2s --max-hold 300ms --kill-after 100ms --status-fd 9 x -- ./helper 2>err 9>s &
    wrapper=$!
    eventually has_text ready .
    eventually has_text err 'runs on'
    not is_dead "$(cat ready)"
    lacks err 'was killed'
    grep -q "'x' is given up: max_hold was reached; the command could not be killed, since pid $(cat ready) belongs to another user: it runs on, and the lock is kept while it can be" err
    # Longer than the lease, and than any limit that was given: it is renewed as long as the helper runs.
    gives 1 as_nobody "$HOLDFAST" run -q -w 4s x true
    : >go
    ended_with 80 "$wrapper"
    jq -e '.lost == "max-hold" and .release == "HF_OK" and .status == 80' s
    gives 0 as_nobody "$HOLDFAST" run -n x true
}

test_c7_a_command_that_may_not_be_killed_is_not_said_to_be() {
    make_setuid_helper
    as_nobody "$HOLDFAST" run --ttl 1s --kill-after 100ms -u "fault+$HOLDFAST_URL?hang=renew:*" x -- ./helper 2>err &
    wrapper=$!
    eventually has_text ready .
    eventually has_text err 'runs on'
    lacks err 'was killed'
    eventually has_text err "'x' is lost: .*; what could not be killed runs on without the lock"
    : >go
    ended_with 80 "$wrapper"
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
