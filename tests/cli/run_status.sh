# holdfast run: exit statuses, command lines, the environment and the descriptors of the command.
. "$(dirname "$0")/run_lib.sh"

test_the_commands_status_is_ours() {
    gives 0 holdfast run x true
    gives 1 holdfast run x false
    gives 42 holdfast run x -- sh -c 'exit 42'
    is_free
}

test_128_and_the_signal_that_killed_it() {
    gives 143 holdfast run x -- sh -c 'kill -TERM $$'
    gives 137 holdfast run x -- sh -c 'kill -KILL $$'
}

test_not_obtained_is_1_or_the_status_of_E() {
    holdfast run x -- sh -c 'echo in >in; cat end' &
    mkfifo end
    eventually has_text in in
    gives 1 holdfast run -n x touch wrong
    gives 1 holdfast run --nonblock x touch wrong
    gives 1 holdfast run -w 0 x touch wrong
    gives 1 holdfast run -w 50ms x touch wrong
    gives 9 holdfast run -n -E 9 x touch wrong
    gives 0 holdfast run -w 0.05 --conflict-exit-code=0 x touch wrong
    : >end
    wait
    not test -e wrong
    is_free
}

test_a_store_that_excludes_nobody_is_refused() {
    gives 64 holdfast run -u memory://x x touch wrong 2>err
    grep -q "another store" err
    not test -e wrong
}

test_cannot_execute_is_126_and_127() {
    gives 127 holdfast run x no-such-command 2>err
    grep -q "no-such-command" err
    gives 127 holdfast run x ./missing
    gives 126 holdfast run x "$dir"
    : >plain
    gives 126 holdfast run x ./plain
    is_free
}

test_the_first_operand_ends_the_options() {
    holdfast run x echo -n --ttl -- >out
    grep -qx -- '--ttl --' out || grep -q -- '--ttl --' out
    [ "$(holdfast run -s x -- echo -- a)" = "-- a" ]
    [ "$(holdfast run -- x echo b)" = b ]
    [ "$(holdfast run -n x echo c)" = c ]
}

test_an_option_behind_the_name_is_refused_before_the_lock() {
    for line in '-n -- true' '--ttl 5s -- true' '-u memory: -- true' '--ttl 5s' '-s true'; do
        # shellcheck disable=SC2086
        gives 64 holdfast run x $line 2>err
        grep -q "options of 'run' stand before the name: '${line%% *}'" err
    done
    gives 64 holdfast run -c true x -n 2>err
    gives 127 holdfast run x -- -n 2>err
    gives 127 holdfast run -- x -- -n 2>err
}

test_c_runs_a_shell() {
    [ "$(SHELL=/bin/sh holdfast run -c 'echo $((6 * 7))' x)" = 42 ]
    [ "$(SHELL=/bin/sh holdfast run x -c 'echo $((6 * 7))')" = 42 ]
    [ "$(env -u SHELL "$HOLDFAST" run -c 'echo $0' x)" = /bin/sh ]
    gives 64 holdfast run -c true x true
}

test_wrong_command_lines_are_64_with_one_sentence() {
    for line in '' 'x' 'x --' '-s -x x true' '-n -w 5 x true' '-w 0 -n x true' '-x --limit 2 x true' '--ttl 5s --never-expires x true' \
        '--ttl 50ms x true' '--ttl nonsense x true' '-E 256 x true' '--signal NOPE x true' \
        '--on-lost maybe x true' '--limit 0 x true' '--status-fd 77 x true' '--nope x true'; do
        # shellcheck disable=SC2086
        gives 64 holdfast run $line 2>err
        [ "$(wc -l <err)" -eq 1 ]
    done
    gives 64 holdfast run '' true
    is_free
}

test_a_kill_after_that_does_not_fit_is_refused_with_figures() {
    gives 64 holdfast run --ttl 6s --kill-after 5s x touch wrong 2>err
    grep -q 'kill-after 5s.*ttl 6s.*2700ms.*12s' err
    gives 0 holdfast run --ttl 6s --kill-after 2700ms x true
    gives 0 holdfast run --ttl 12s --kill-after 5s x true
    gives 0 holdfast run --ttl 100ms x true
    gives 0 holdfast run --never-expires --kill-after 1h x true
    not test -e wrong
}

test_shared_locks_go_together_and_limits_hold() {
    mkfifo end
    holdfast run -s x -- sh -c 'echo in >in; cat end' &
    eventually has_text in in
    gives 0 holdfast run -s -n x true
    gives 1 holdfast run -n x true
    gives 1 holdfast run -n --limit 1 x true
    gives 0 holdfast run -n --limit 2 x true
    : >end
    wait
}

test_exclusive_is_the_default_and_can_be_said() {
    for word in '' -x --exclusive; do
        # shellcheck disable=SC2086
        gives 0 holdfast run $word x -- sh -c 'holdfast show --json x >shown; env -u HOLDFAST_HELD holdfast run -qns x true; echo $? >second'
        jq -e '.holders[0].mode == "exclusive"' shown
        has_text second 1
    done
    gives 64 holdfast run -x -s x true
}

test_the_environment_tells_what_is_held() {
    holdfast run -s 'a b=%' env >"env"
    grep -qx 'HOLDFAST_NAME=a b=%' env
    grep -qx 'HOLDFAST_MODE=shared' env
    grep -qx 'HOLDFAST_TOKEN=[0-9]\{10,\}' env
    grep -q '^HOLDFAST_SEQUENCER=..' env
    grep -q '^HOLDFAST_HELD=a%20b%3D%25=' env
    grep -qx "HOLDFAST_URL=$HOLDFAST_URL" env
    holdfast run x -- sh -c 'holdfast check "$HOLDFAST_SEQUENCER"'
    gives 1 holdfast check "$(holdfast run x -- sh -c 'echo "$HOLDFAST_SEQUENCER"')"
}

test_no_credentials_reach_the_command() {
    # shellcheck disable=SC2097,SC2098 # the URL that is used is the outer one
    HOLDFAST_PASSWORD=hush HOLDFAST_REDIS_SECRET=hush HOLDFAST_URL='redis://me:hush@127.0.0.1/0' \
        holdfast run -u "$HOLDFAST_URL" x env >"env"
    not grep -q hush env
    grep -qx "HOLDFAST_URL=$HOLDFAST_URL" env
}

test_c_without_a_command_is_refused_before_the_lock() {
    gives 64 holdfast run a -c 2>err
    grep -q 'needs one command' err
    gives 64 holdfast run a -c true false
    gives 0 holdfast run a -c true
    not test -e wrong
}

# However the store was named, a holdfast inside of the command means the same one, or none.
test_the_store_of_the_command_is_the_locks() {
    url=$HOLDFAST_URL
    unset HOLDFAST_URL
    # shellcheck disable=SC2016
    gives 0 holdfast run -u "$url" x -- sh -c 'holdfast check "$HOLDFAST_SEQUENCER"'
    gives 64 holdfast run -u "$url" x holdfast run x touch wrong 2>err
    grep -q "already runs under 'x'" err
    HOLDFAST_URL=sqlite://me:hush@$dir/store/locks.db
    export HOLDFAST_URL
    # shellcheck disable=SC2016
    gives 0 holdfast run x -- sh -c 'holdfast check "$HOLDFAST_SEQUENCER"'
    gives 64 holdfast run x holdfast run x touch wrong
    holdfast run x env >"env"
    grep -qx "HOLDFAST_URL=sqlite://me:\*\*\*@$dir/store/locks.db" env
    not grep -q hush env
    not test -e wrong
}

test_a_nested_run_of_the_same_lock_is_refused_at_once() {
    gives 64 holdfast run x holdfast run x touch wrong 2>err
    grep -q "already runs under 'x'" err
    gives 64 holdfast run x holdfast run y holdfast run -n x touch wrong
    gives 0 holdfast run x holdfast run y true
    mkdir -m 700 other
    gives 0 holdfast run x holdfast run -u "sqlite:$dir/other/locks.db" x true
    held=$(holdfast run x -- sh -c 'echo "$HOLDFAST_HELD"')
    HOLDFAST_HELD=$held gives 0 holdfast run x true
    not test -e wrong
}

test_no_descriptor_of_ours_reaches_the_command() {
    holdfast run --status-fd 9 x ls /proc/self/fd 9>status >fds
    ls /proc/self/fd >plain
    diff plain fds
}

test_closed_standard_descriptors_stay_closed_and_harm_nothing() {
    gives 0 holdfast run x -- sh -c 'test ! -e /proc/$$/fd/0' <&-
    gives 0 holdfast run x true >&-
    gives 0 holdfast run x -- sh -c 'test ! -e /proc/$$/fd/2 && test ! -e /proc/$$/fd/1' <&- >&- 2>&-
    gives 127 holdfast run x no-such-command <&- >&- 2>&-
    is_free
}

test_standard_input_and_output_are_the_commands() {
    [ "$(echo hello | holdfast run x cat)" = hello ]
}

test_status_fd_tells_whose_status_it_was() {
    gives 3 holdfast run --status-fd 9 x -- sh -c 'exit 3' 9>s
    [ "$(wc -l <s)" -eq 1 ]
    grep -q '"name":"x","obtained":true' s
    grep -q '"lost":null,"error":null,"release":"HF_OK","may_hold_ms":null,"started":true,"exit":3,"signal":null' s
    grep -q '"status":3,"status_of":"command"}$' s
    grep -q '"generation":"[0-9]\{10,\}"' s
    gives 143 holdfast run --status-fd 9 x -- sh -c 'kill $$' 9>s
    grep -q '"exit":null,"signal":15,"status":143,"status_of":"command"' s
    gives 127 holdfast run --status-fd 9 x no-such-command 9>s
    grep -q '"obtained":true.*"started":false,"exit":null,"signal":null,"status":127,"status_of":"holdfast"' s
    gives 1 holdfast run x holdfast run --status-fd 9 -s y sh -c 'exit 1' 9>s
    holdfast run y -- sh -c 'unset HOLDFAST_HELD; holdfast run -n --status-fd 9 y true' 9>s || :
    grep -q '"obtained":false.*"generation":null.*"status":1,"status_of":"holdfast"' s
    gives 0 holdfast run --json x true 2>s
    grep -q '"status":0' s
}

test_the_note_is_the_name_of_the_command() {
    holdfast run x -- "$(command -v sh)" -c 'holdfast show --json x >shown' - --password=sesame
    grep -q '"note":"sh"' shown
    lacks shown sesame
    holdfast run --note 'nightly ünïcode' x -- sh -c 'holdfast show --json x >shown'
    grep -q '"note":"nightly ünïcode"' shown
    long=$(printf '%0200d' 0)ü
    ln -s /bin/true "$long"
    gives 0 holdfast run x "./$long"
    SHELL=/bin/sh holdfast run x -c 'holdfast show --json x >shown; : sesame'
    grep -q '"note":"sh"' shown
    lacks shown sesame
}

test_options_of_flock_are_taken() {
    gives 3 holdfast run -e -o -F x sh -c 'exit 3'
    gives 3 holdfast run -eonF x -c 'exit 3'
    gives 3 holdfast run --close --no-fork --exclusive x -c 'exit 3'
    gives 64 holdfast run -e -s x true
}

test_a_limit_on_the_size_of_files_gets_a_sentence() {
    holdfast run x true # the store is there
    # What it says goes through a pipe: a file could not grow.
    sh -c 'ulimit -f 0; holdfast run y true; echo "status $?" >&2' 2>&1 | cat >err
    [ "$(wc -l <err)" -eq 2 ]
    grep -q '^status 69$' err
    grep -q '^holdfast: .*ulimit -f' err
    # The command has the signal as it was.
    gives 153 holdfast run x -- sh -c 'kill -XFSZ $$'
}

test_a_waiter_with_patience_outlasts_an_outage() {
    outage="fault+$HOLDFAST_URL?fail=attempt:1-9&op_timeout=100ms"
    gives 69 holdfast run -u "$outage" x touch wrong 2>err
    grep -q 'made to fail' err
    gives 69 holdfast run -u "$outage" --patience 100ms x touch wrong 2>/dev/null
    gives 0 holdfast run -u "$outage" --patience 1m x touch right
    gives 0 holdfast lock -q -u "$outage" --patience 1m y --ttl 1s >/dev/null
    # No longer than the wait itself.
    gives 69 holdfast run -u "fault+$HOLDFAST_URL?fail=attempt:*" -w 300ms --patience 1h x touch wrong 2>err
    gives 69 holdfast run -u "fault+$HOLDFAST_URL?fail=attempt:*&op_timeout=1m" -n x touch wrong 2>err
    exists right
    absent wrong
}

test_every_error_names_the_server() {
    for url in redis://127.0.0.1:1/0 postgres://u@127.0.0.1:1/d mysql://u@127.0.0.1:1/d etcd://127.0.0.1:1/p \
        cassandra://127.0.0.1:1/k redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3 redis+unix:///127.0.0.1; do
        hf stores "${url%%:*}"
        [ "$status" -eq 0 ] && ! grep -q missing out || continue
        for verb in 'run -n x true' ls; do
            # shellcheck disable=SC2086
            timeout 30 "$HOLDFAST" -u "$url" $verb >out 2>err && fail "$url: it was reached"
            grep -q '127\.0\.0\.1' err || fail "$url: $(cat err)"
        done
    done
}

# Also without a terminal, and never with -q.
test_who_is_refused_is_told_who_holds_it() {
    holdfast run --note 'nightly build' x -- sh -c ': >in; until test -e go; do sleep 0.01; done' &
    holder=$!
    eventually test -e in
    who="held by $(id -un)@$(uname -n), pid $holder, holdfast \(nightly build\), since 2[0-9-]*T[0-9:]*Z\$"
    for wait in -n '-w 50ms'; do
        # shellcheck disable=SC2086
        gives 1 holdfast run $wait x true 2>err
        [ "$(wc -l <err)" -eq 1 ]
        grep -Eq "^holdfast: .*'x'.*: $who" err || fail "$(cat err)"
        # shellcheck disable=SC2086
        gives 1 holdfast lock $wait x --ttl 1s 2>err
        grep -Eq "^holdfast: .*'x'.*: $who" err || fail "$(cat err)"
        # shellcheck disable=SC2086
        gives 1 holdfast run -q $wait x true 2>err
        [ ! -s err ]
    done
    : >go
    ended_with 0 $holder
}

test_a_store_that_cannot_be_used_is_69_or_64() {
    gives 69 holdfast run -u sqlite:/proc/no/such/locks.db x touch wrong
    gives 69 holdfast run -u nosuchstore://h x touch wrong
    not test -e wrong
}

. "$(dirname "$0")/harness.sh"
