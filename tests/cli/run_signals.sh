# holdfast run: signals reach the command's whole group, end a wait without a trace, and the lock
# stays until the group is gone.
. "$(dirname "$0")/run_lib.sh"

# A command with a grandchild; both write down what they get.
family='
echo $$ >leader
sh -c '\''
    trap "echo HUP >>young" HUP; trap "echo USR2 >>young" USR2; trap "echo USR1 >>young" USR1
    trap "echo TERM >>young; exit" TERM
    echo $$ >grandchild; while :; do sleep 0.01; done'\'' &
trap "echo HUP >>old" HUP; trap "echo INT >>old" INT; trap "echo USR1 >>old" USR1
trap "echo USR2 >>old" USR2; trap "echo QUIT >>old" QUIT; trap "echo WINCH >>old" WINCH
trap "echo TERM >>old; exit 5" TERM
until test -s grandchild; do sleep 0.01; done
echo ready >ready
while :; do sleep 0.01; done'

# In the background a shell ignores INT and QUIT for its jobs; a command inherits that.
# shellcheck disable=SC2120 # its arguments are options, which may be none
start_family() {
    env --default-signal=INT,QUIT "$HOLDFAST" run "$@" x -- sh -c "$family" &
    wrapper=$!
    eventually has_text ready ready
}

test_signals_go_to_the_whole_group() {
    start_family
    for sig in HUP USR1 USR2; do
        kill -$sig $wrapper
        eventually has_text old $sig
        eventually has_text young $sig
    done
    for sig in INT QUIT WINCH; do
        kill -$sig $wrapper
        eventually has_text old $sig
    done
    kill -TERM $wrapper
    ended_with 5 $wrapper
    has_text young TERM
    is_dead "$(cat grandchild)"
    is_free
}

test_tstp_stops_and_cont_continues_the_group() {
    start_family
    child=$(cat leader)
    kill -TSTP $wrapper
    eventually grep -q '^State:.T' "/proc/$child/status"
    is_held x
    kill -CONT $wrapper
    eventually not grep -q '^State:.T' "/proc/$child/status"
    kill -TERM $wrapper
    ended_with 5 $wrapper
}

test_a_stopped_command_can_still_be_ended() {
    start_family
    child=$(cat leader)
    kill -STOP "$child"
    eventually grep -q '^State:.T' "/proc/$child/status"
    kill -TERM $wrapper
    ended_with 5 $wrapper
}

test_what_was_ignored_stays_ignored() {
    mkfifo end
    (trap '' HUP; exec "$HOLDFAST" run x -- sh -c 'echo in >in; cat end; grep ^SigIgn /proc/$$/status >ign') &
    wrapper=$!
    eventually has_text in in
    kill -HUP $wrapper
    : >end
    ended_with 0 $wrapper
    [ $((0x$(sed 's/.*[^0-9a-f]//' ign) & 1)) -eq 1 ]
}

test_the_command_inherits_no_signal_setting_of_ours() {
    grep '^Sig[IB]' /proc/self/status >plain
    holdfast run x grep '^Sig[IB]' /proc/self/status >under
    diff plain under
}

test_a_background_process_of_the_group_keeps_the_lock() {
    mkfifo end
    holdfast run x -- sh -c 'cat end & exit 7' &
    wrapper=$!
    eventually is_held x
    gives 1 env -u HOLDFAST_HELD "$HOLDFAST" run -q -w 100ms x true
    : >end
    ended_with 7 $wrapper
    gives 0 holdfast run -n x true
}

test_a_process_that_left_the_group_does_not_keep_the_lock() {
    holdfast run x -- sh -c 'setsid sh -c "echo \$\$ >daemon; exec sleep 60" & until test -s daemon; do sleep 0.01; done'
    is_free
    not is_dead "$(cat daemon)"
    kill "$(cat daemon)"
}

test_a_signal_while_waiting_leaves_nothing() {
    mkfifo end
    holdfast run x -- sh -c 'echo in >in; cat end' &
    holder=$!
    eventually has_text in in
    for pair in INT:130 TERM:143 HUP:129 QUIT:131 USR1:138 USR2:140; do
        env --default-signal=INT,QUIT "$HOLDFAST" run x touch wrong &
        waiter=$!
        eventually waits
        kill -"${pair%:*}" $waiter
        ended_with "${pair#*:}" $waiter
        not waits
    done
    : >end
    ended_with 0 $holder
    is_free
    not test -e wrong
}

test_a_waiter_gets_its_turn_after_the_group_is_gone() {
    mkfifo end
    holdfast run x -- sh -c 'echo $$ >leader; sh -c "cat end; echo first >>order" &' &
    eventually has_text leader .
    holdfast run x -- sh -c 'echo second >>order' &
    waiter=$!
    eventually waits
    : >end
    ended_with 0 $waiter
    [ "$(tr '\n' ' ' <order)" = "first second " ]
}

. "$(dirname "$0")/harness.sh"
