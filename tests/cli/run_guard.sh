# holdfast run: what becomes of the command when the wrapper, or its guard, is killed or stopped.
. "$(dirname "$0")/run_lib.sh"

# The guard of $wrapper.
guard() {
    ps -o pid=,comm= --ppid "$wrapper" | sed -n 's/^ *\([0-9]*\) holdfast-guard$/\1/p'
}

is_running() {
    ! is_dead "$1"
}

test_c13_nobody_is_alive_when_a_stopped_wrapper_loses_its_lease() {
    start_stubborn --ttl 3s
    kill -STOP "$wrapper"
    gives 0 look_when_let_in
    kill -CONT "$wrapper"
    ended_with 80 "$wrapper"
}

test_nobody_outlives_a_killed_wrapper() {
    start_stubborn --ttl 30s
    kill -KILL "$wrapper"
    eventually all_dead
}

test_nobody_outlives_a_killed_process_group() {
    setsid "$HOLDFAST" run --ttl 30s x -- sh -c "$stubborn" &
    wrapper=$!
    eventually has_text ready ready
    kill -KILL "-$wrapper"
    eventually all_dead
}

many_were_born() {
    [ "$(wc -l <born)" -ge 20 ]
}

nobody_was_left() {
    for pid in $(cat born); do
        is_dead "$pid" || return 1
    done
}

test_a_crowd_that_keeps_forking_dies_too() {
    # Each leaves the group, starts the next and dies.
    cat >breed <<'END'
echo $$ >>born
setsid sh breed &
sleep 0.02
END
    holdfast run --ttl 30s x -- sh -c 'setsid sh breed & exec sleep 60' &
    wrapper=$!
    eventually test -s born
    eventually many_were_born
    kill -KILL "$wrapper"
    eventually nobody_was_left
    born=$(wc -l <born)
    eventually nobody_was_left
    [ "$(wc -l <born)" -eq "$born" ]
}

test_a_run_inside_a_run_dies_with_the_outer_wrapper() {
    holdfast run --ttl 30s outer -- holdfast run --ttl 30s x -- sh -c "$stubborn" &
    wrapper=$!
    eventually has_text ready ready
    kill -KILL "$wrapper"
    eventually all_dead
}

test_a_run_inside_a_run_dies_alone() {
    holdfast run outer -- sh -c 'holdfast run --ttl 30s x -- sh -c "$1" & echo $! >inner
        wait $!; echo $? >status' sh "$stubborn" &
    outer=$!
    eventually has_text ready ready
    kill -KILL "$(cat inner)"
    eventually all_dead
    ended_with 0 $outer
    has_text status 137
}

test_a_killed_waiter_leaves_no_guard() {
    holdfast lock -q x --ttl 1m >/dev/null
    holdfast run x true &
    wrapper=$!
    eventually waits
    guard=$(guard)
    kill -KILL "$wrapper"
    eventually is_dead "$guard"
}

test_nothing_runs_without_the_guard() {
    holdfast lock -q x --ttl 1m >ticket
    holdfast run x touch wrong 2>err &
    wrapper=$!
    eventually waits
    kill -KILL "$(guard)"
    holdfast unlock x --ticket-file ticket
    ended_with 71 "$wrapper"
    grep -q "cannot run 'touch': the guard was killed" err
    absent wrong
    is_free
}

test_the_command_dies_with_a_killed_guard() {
    holdfast run --status-fd 9 x -- sh -c 'echo $$ >leader; exec sleep 60' 9>s &
    wrapper=$!
    eventually has_text leader .
    kill -KILL "$(guard)"
    ended_with 137 "$wrapper"
    is_free
}

test_what_a_killed_guard_leaves_still_ends_with_the_lock() {
    start_stubborn --ttl 2s --kill-after 200ms
    kill -KILL "$(guard)"
    eventually is_dead "$(cat leader)"
    holdfast break x --ticket "$(holder_ticket x)" --now
    ended_with 80 "$wrapper"
    all_dead
}

test_a_stopped_guard_holds_up_nothing() {
    holdfast run x -- sh -c 'until test -e go; do sleep 0.01; done; exit 3' &
    wrapper=$!
    eventually is_held x
    kill -STOP "$(guard)"
    : >go
    ended_with 3 "$wrapper"
}

test_a_guard_leaves_with_the_wrapper() {
    gives 3 holdfast run x -- sh -c 'ps -o pid=,comm= -p $PPID >family; exit 3'
    guard=$(sed -n 's/^ *\([0-9]*\) holdfast-guard.*/\1/p' family)
    test -n "$guard"
    is_dead "$guard"
}

test_what_left_the_group_outlives_a_good_end() {
    gives 0 holdfast run x -- sh -c 'setsid sh -c "echo \$\$ >stray; exec sleep 60" & until test -s stray; do sleep 0.01; done'
    is_running "$(cat stray)"
    kill "$(cat stray)"
}

test_a_guard_holds_no_descriptor_of_the_command() {
    # If the guard held the pipe's end, cat would wait for it.
    holdfast run --ttl 1s x -- sh -c '
        until [ "$(readlink /proc/$PPID/fd/0 | cut -c1-6)" = socket ]; do sleep 0.01; done
        ls /proc/$PPID/fd; readlink /proc/$PPID/cwd' 9<. | tr '\n' ' ' >fds
    [ "$(cat fds)" = "0 1 2 / " ] || fail "$(cat fds)"
}

test_a_large_environment_arrives() {
    big=$(head -c 100000 /dev/zero | tr '\0' x)
    gives 0 env A="$big" B="$big" C="$big" D="$big" E="$big" holdfast run x -- \
        sh -c '[ ${#A} -eq 100000 ] && [ ${#E} -eq 100000 ] && [ -n "$HOLDFAST_TOKEN" ]'
}

test_without_a_guard_the_direct_child_dies_with_a_killed_wrapper() {
    holdfast run --no-guard --ttl 1s x -- sh -c 'echo $$ >leader; ps -o comm= -p $PPID >parent; while :; do sleep 0.05; done' &
    wrapper=$!
    eventually has_text parent holdfast
    lacks parent guard
    kill -KILL "$wrapper"
    eventually is_dead "$(cat leader)"
}

test_without_a_guard_a_loss_ends_all_the_same() {
    start_stubborn --no-guard --ttl 2s --kill-after 200ms
    holdfast break x --ticket "$(holder_ticket x)" --now
    ended_with 80 "$wrapper"
    all_dead
}

. "$(dirname "$0")/harness.sh"
