# holdfast run: locks that stay closed for a time, jobs of many machines, and giving way.
. "$(dirname "$0")/run_lib.sh"

remaining_ms() {
    holdfast show --json "$1" | jq '.holders[0].remaining_ms'
}

place() {
    holdfast show --json "$1" | jq -r '.holders[0].place'
}

test_at_least_keeps_the_lock_closed() {
    gives 0 holdfast run --at-least 1h x true
    [ "$(place x)" = lingering ]
    [ "$(remaining_ms x)" -gt 3500000 ]
    [ "$(remaining_ms x)" -le 3600000 ]
    gives 1 holdfast run -n x touch wrong 2>err
    not test -e wrong
    gives 0 holdfast break --now --ticket "$(holder_ticket x)" x
    gives 0 holdfast run -n x true
}

test_at_least_counts_whatever_became_of_the_command() {
    gives 7 holdfast run --at-least 1h x sh -c 'exit 7'
    [ "$(place x)" = lingering ]
    gives 127 holdfast run --at-least 1h y no-such-command 2>err
    not is_held y
}

test_every_runs_once_and_says_nothing_after() {
    gives 0 holdfast run --every 1h x sh -c 'echo ran >>log'
    gives 0 holdfast run --every 1h x sh -c 'echo ran >>log' >out 2>err
    [ ! -s out ] && [ ! -s err ]
    [ "$(wc -l <log)" -eq 1 ]
    [ "$(remaining_ms x)" -gt 3200000 ]
    [ "$(remaining_ms x)" -le 3240000 ] # nine tenths
}

test_every_is_silent_while_another_machine_does_it() {
    mkfifo end
    holdfast run --every 1h x -- sh -c 'echo in >in; cat end' &
    eventually has_text in in
    gives 0 holdfast run --every 1h x touch wrong >out 2>err
    [ ! -s out ] && [ ! -s err ]
    gives 0 holdfast run --every 1h --status-fd 3 x touch wrong 3>status
    jq -e '.obtained == false and .status == 0 and .started == false' status
    : >end
    wait
    not test -e wrong
}

test_every_tries_again_after_a_failure() {
    gives 3 holdfast run --every 1h x sh -c 'exit 3'
    is_free
    gives 137 holdfast run --every 1h x sh -c 'kill -KILL $$'
    is_free
    gives 0 holdfast run --every 1h x touch ran
    test -e ran
}

test_wrong_combinations_are_refused_with_one_sentence() {
    for line in '--every 1h -w 5s' '--every 1h --at-least 1h' '--every 1h -E 3' '--every 0' '--at-least 400d' \
        '--on-wanted NOPE' '--value a --value-file b' '-s --value a' '--limit 2 --value-file b'; do
        # shellcheck disable=SC2086
        gives 64 holdfast run $line x touch wrong 2>err
        [ "$(wc -l <err)" -eq 1 ]
    done
    gives 64 holdfast run --every 1h -w 5s x true 2>err
    grep -q -- '--every does not wait: leave out -w' err
    not test -e wrong
    is_free
}

test_a_store_that_cannot_is_refused_before_the_command_runs() {
    for line in '--at-least 1h' '--every 1h' '--value a' '--value-file f' '--on-wanted USR1'; do
        # shellcheck disable=SC2086
        gives 64 holdfast run -u 'postgres://127.0.0.1:1/db?hold=session' $line x touch wrong 2>err
        [ "$(wc -l <err)" -eq 1 ] || { cat err; return 1; }
    done
    not test -e wrong
}

test_on_wanted_tells_the_command() {
    # shellcheck disable=SC2016 # for the inner shell
    holdfast run --on-wanted USR1 x -- sh -c 'trap "echo wanted >wanted; exit 0" USR1; echo in >in
        while :; do sleep 0.02; done' &
    job=$!
    eventually has_text in in
    not test -e wanted
    gives 0 holdfast run x touch second
    ended_with 0 "$job"
    has_text wanted wanted
    test -e second
    is_free
}

# Somebody stood behind it before the command was there.
test_on_wanted_is_not_missed_before_the_command_starts() {
    mkfifo end
    holdfast run x -- sh -c 'echo in >in; cat end' &
    eventually has_text in in
    holdfast run --ttl 2s --on-wanted TERM x -- sleep 60 &
    job=$!
    eventually waits
    holdfast run x touch third &
    third=$!
    eventually sh -c '[ "$(holdfast show --json x | jq ".queue | length")" = 2 ]'
    : >end
    ended_with 143 "$job"
    ended_with 0 "$third"
    test -e third
}

. "$(dirname "$0")/harness.sh"
