# holdfast run --with: several locks under one command.
. "$(dirname "$0")/run_lib.sh"

test_all_are_held_and_released() {
    gives 0 holdfast run --with b --with c a -- sh -c 'holdfast ls --json >seen'
    [ "$(jq -r .name seen | tr '\n' ' ')" = 'a b c ' ]
    is_free
}

test_one_that_is_busy_leaves_none() {
    mkfifo end
    holdfast run b -- sh -c 'echo in >in; cat end' &
    eventually has_text in in
    gives 1 holdfast run -n --with b a touch wrong 2>err
    [ "$(wc -l <err)" -eq 1 ] && grep -q "acquire 'b'" err
    gives 1 holdfast run -w 100ms --with b a touch wrong 2>err
    not is_held a
    : >end
    wait
    not test -e wrong
    is_free
}

test_two_sets_in_either_order_both_get_through() {
    for i in 1 2 3 4 5; do
        holdfast run --with b a -- sh -c "echo $i >>log" &
        first=$!
        holdfast run --with a b -- sh -c "echo $i >>log" &
        second=$!
        ended_with 0 "$first"
        ended_with 0 "$second"
    done
    [ "$(wc -l <log)" -eq 10 ]
    is_free
}

test_the_command_ends_with_the_first_that_is_lost() {
    holdfast run --with b a -- sh -c 'echo in >in; while :; do sleep 0.02; done' 2>lost &
    job=$!
    eventually has_text in in
    gives 0 holdfast break --now --ticket "$(holder_ticket b)" b
    ended_with 80 "$job"
    grep -q '^holdfast: ' lost
    is_free
}

test_the_environment_has_all_sequencers_and_names() {
    # shellcheck disable=SC2016 # for the inner shell
    gives 0 holdfast run --with b a -- sh -c 'for s in $HOLDFAST_SEQUENCERS; do holdfast check "$s"; done >checked
        echo "$HOLDFAST_NAME ${HOLDFAST_SEQUENCERS%% *}" >seen; echo "$HOLDFAST_SEQUENCER" >first'
    [ "$(cat checked)" = "$(printf 'current\ncurrent')" ]
    [ "$(cat seen)" = "a $(cat first)" ]
    # shellcheck disable=SC2016
    [ "$(HOLDFAST_SEQUENCERS=old holdfast run a sh -c 'echo "${HOLDFAST_SEQUENCERS-none}"')" = none ]
    gives 64 holdfast run --with b a -- holdfast run b true 2>err
    grep -q 'would wait for' err
}

test_bad_sets_are_refused_with_one_sentence() {
    for line in '--with a a' '--with b --with b a'; do
        # shellcheck disable=SC2086
        gives 64 holdfast run $line touch wrong 2>err
        [ "$(wc -l <err)" -eq 1 ] && grep -q 'named twice' err
    done
    gives 64 holdfast run --with '' a touch wrong 2>err
    [ "$(wc -l <err)" -eq 1 ]
    not test -e wrong
    is_free
}

test_at_least_keeps_all_of_them_closed() {
    gives 0 holdfast run --at-least 1h --with b a true
    gives 1 holdfast run -n a true 2>err
    gives 1 holdfast run -n b true 2>err
}

. "$(dirname "$0")/harness.sh"
