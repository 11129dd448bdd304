# holdfast run, elect and value: what is kept beside a lock.
. "$(dirname "$0")/run_lib.sh"

test_the_value_file_is_filled_and_kept() {
    hf value x
    refused 1 "'x' has no value"
    gives 0 holdfast run --value-file f x sh -c 'cat f >seen; printf 1 >f'
    [ ! -s seen ]
    gives 0 holdfast run --value-file f x sh -c 'cat f >seen; printf 12 >f'
    [ "$(cat seen)" = 1 ]
    hf value x
    status_is 0
    out_is 12
    err_is_empty
    nothing_left
}

test_a_command_that_failed_keeps_nothing() {
    gives 0 holdfast run --value-file f x sh -c 'printf good >f'
    gives 4 holdfast run --value-file f x sh -c 'printf bad >f; exit 4'
    hf value x
    out_is good
}

test_a_value_file_that_is_too_long_changes_nothing() {
    gives 0 holdfast run --value-file f x sh -c 'printf good >f'
    gives 64 holdfast run --value-file f x sh -c 'head -c 1025 /dev/zero >f' 2>err
    grep -q 'more than 1024 bytes: the value stays as it was' err
    [ "$(wc -l <err)" -eq 1 ]
    hf value x
    out_is good
    gives 0 holdfast run --value-file f x sh -c 'head -c 1024 /dev/zero | tr "\0" a >f'
    [ "$(holdfast value x | wc -c)" -eq 1025 ]
    gives 71 holdfast run --value-file f x rm f 2>err
    [ "$(wc -l <err)" -eq 1 ]
    is_free
}

test_a_value_file_that_cannot_be_written_starts_nothing() {
    gives 71 holdfast run --value-file none/f x touch wrong 2>err
    grep -q -- "--value-file 'none/f'" err
    not test -e wrong
    is_free
}

test_the_environment_has_the_value_and_the_doubt() {
    # shellcheck disable=SC2016 # for the inner shell
    show='echo "$HOLDFAST_VALUE/$HOLDFAST_DOUBT"'
    [ "$(holdfast run --value abc x sh -c "$show")" = abc/0 ]
    [ "$(HOLDFAST_VALUE=old HOLDFAST_DOUBT=1 holdfast run --value-file f x sh -c "$show")" = abc/0 ]
    [ "$(HOLDFAST_VALUE=old holdfast run x sh -c "$show")" = / ]
    gives 0 holdfast run --value-file f x sh -c 'printf "a\0b" >f'
    # shellcheck disable=SC2016
    [ "$(holdfast run --value-file f x sh -c 'echo "${HOLDFAST_VALUE-unset}/$HOLDFAST_DOUBT"')" = unset/0 ]
}

test_a_holder_that_was_broken_leaves_a_doubt() {
    mkfifo end
    holdfast run --value half x -- sh -c 'echo in >in; cat end' 2>lost &
    job=$!
    eventually has_text in in
    gives 0 holdfast break --now --ticket "$(holder_ticket x)" x
    ended_with 80 "$job"
    hf value x
    status_is 0
    out_is half
    err_has "^holdfast: the value of 'x' is in doubt"
    hf value --json x
    json '.[0].doubt == true and .[0].value == "half" and .[0].live == false'
    # shellcheck disable=SC2016 # for the inner shell
    [ "$(holdfast run --value-file f x sh -c 'echo "$HOLDFAST_VALUE/$HOLDFAST_DOUBT"')" = half/1 ]
    hf value x
    err_is_empty # the command has ended well, and its value was kept
}

test_a_leader_is_told_as_long_as_it_leads() {
    mkfifo end
    holdfast elect --value host:80 leader -- sh -c 'echo in >in; cat end' &
    job=$!
    eventually has_text in in
    hf value --live leader
    status_is 0
    out_is host:80
    hf value --live --json leader
    json '.[0].live == true and .[0].value == "host:80" and .[0].name == "leader"'
    : >end
    ended_with 0 "$job"
    hf value --live leader
    refused 1 "nobody who holds 'leader' has written its value"
    hf value leader
    out_is host:80
    # Somebody who holds the lock and has written nothing is not that leader.
    gives 1 holdfast run leader holdfast value --live leader 2>err
}

test_one_leads_and_the_other_stands_by() {
    mkfifo end
    holdfast elect --value one leader -- sh -c 'echo in >in; cat end' &
    first=$!
    eventually has_text in in
    holdfast elect --value two leader -- sh -c 'holdfast value --live leader >seen' &
    second=$!
    eventually waits
    [ "$(holdfast value --live leader)" = one ]
    : >end
    ended_with 0 "$first"
    ended_with 0 "$second"
    has_text seen two
}

test_elect_needs_a_value() {
    gives 64 holdfast elect leader touch wrong 2>err
    grep -q "holdfast elect --value ADDRESS NAME -- COMMAND" err
    gives 64 holdfast elect --value a leader 2>err
    grep -q "holdfast elect NAME -- COMMAND" err
    gives 64 holdfast elect --value "$(head -c 1025 /dev/zero | tr '\0' a)" leader touch wrong 2>err
    grep -q 'too long; at most 1024 bytes' err
    not test -e wrong
}

test_a_lock_without_a_value_and_a_store_without_values() {
    hf value --json nothing
    status_is 1
    json '.[0].value == null and .[0].generation == null and .[0].doubt == false'
    hf -q value nothing
    status_is 1
    err_is_empty
    hf value -u redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3 x
    [ "$status" -ne 0 ]
}

. "$(dirname "$0")/harness.sh"
