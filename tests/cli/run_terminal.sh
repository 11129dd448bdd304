# holdfast run on a terminal: job control as under a shell, and the line that tells who holds the lock.
# What is typed is echoed, so that what is expected is spelled differently from what is sent.
. "$(dirname "$0")/run_lib.sh"
: "${PTYDRIVE:?}"
export PS1='$ ' TERM=xterm

on_terminal() {
    "$PTYDRIVE" bash --norc --noprofile --noediting -i
}

in_script() {
    "$PTYDRIVE" "$@"
}

test_the_command_has_the_terminal_from_the_start() {
    in_script "$HOLDFAST" run x -- sh -c 'test $(ps -o tpgid= -p $$) -eq $$' <<'X'
end 10 0
X
}

test_the_first_lock_of_a_user_says_whose_it_is() {
    [ "$(id -u)" = 0 ] || skip "needs root, to become another user"
    mkdir home && chown 65534:65534 home && chmod 711 .
    as_user="setpriv --reuid=65534 --regid=65534 --clear-groups env -u HOLDFAST_URL -u XDG_STATE_HOME HOME=$PWD/home"
    in_script sh -c "$as_user $HOLDFAST run x -- true" <<'X'
expect 10 other users have their own
end 10 0
X
    in_script sh -c "$as_user $HOLDFAST run x -- true 2>&1 | grep -c other" <<'X'
expect 10 0
end 10 1
X
}

test_ctrl_c_goes_to_the_command() {
    on_terminal <<'X'
send holdfast run x -- sh -c 'echo in-$((40+2)); exec sleep 60'\r
expect 10 in-42
send \x03
expect 10 $ 
send echo rc-$?\r
expect 10 rc-130
send exit 0\r
end 10 0
X
    is_free
}

test_ctrl_c_ends_the_loop_around_it() {
    on_terminal <<'X'
send for i in 1 2 3; do holdfast run x -- sh -c 'echo in-'$i'-$((40+2)); exec sleep 60'; done\r
expect 10 in-1-42
send \x03
expect 10 $ 
send echo out-$((40+2))\r
expect 10 out-42
never in-2-42
send exit 0\r
end 10 0
X
}

test_ctrl_c_ends_the_script_around_it() {
    echo 'for i in 1 2 3; do holdfast run x -- sh -c "echo in-$i; exec sleep 60"; done; echo on' >script
    in_script sh script <<'X'
expect 10 in-1
send \x03
end 10 130
never in-2
X
    is_free
}

test_a_command_may_handle_ctrl_c_itself() {
    on_terminal <<'X'
send holdfast run x -- sh -c 'trap "echo trapped-\\$((40+2)); exit 3" INT; echo in-$((40+2)); while :; do sleep 0.05; done'\r
expect 10 in-42
send \x03
expect 10 trapped-42
send echo rc-$?\r
expect 10 rc-3
send exit 0\r
end 10 0
X
}

test_ctrl_z_stops_and_fg_continues() {
    on_terminal <<'X'
send holdfast run x -- sh -c 'echo in-$((40+2)); read a; echo got-$a-$((40+2)); exit 3'\r
expect 10 in-42
send \x1a
expect 10 Stopped
send jobs; echo shell-$((40+2))\r
expect 10 shell-42
send fg\r
expect 10 holdfast run
send hello\r
expect 10 got-hello-42
send echo rc-$?\r
expect 10 rc-3
send exit 0\r
end 10 0
X
    is_free
}

test_a_job_stopped_past_its_lease_is_killed_by_fg() {
    on_terminal <<'X'
send holdfast run --ttl 500ms x -- sh -c 'echo in-$((40+2)); read a; echo on-$((40+2))'\r
expect 10 in-42
send \x1a
expect 10 Stopped
send holdfast run -w 20 x echo mine-$((40+2))\r
expect 20 mine-42
send fg\r
expect 10 lost
expect 10 $ 
send echo rc-$?\r
expect 10 rc-80
never on-42
send exit 0\r
end 10 0
X
}

test_a_shell_under_a_lock_has_job_control() {
    on_terminal <<'X'
send holdfast run x -- bash --norc --noprofile --noediting -i\r
send echo inner-$((40+2))\r
expect 10 inner-42
send sh -c 'echo first-$((40+2)); exec sleep 60'\r
expect 10 first-42
send \x03
expect 10 $ 
send echo rc-$?\r
expect 10 rc-130
send sh -c 'echo second-$((40+2)); exec sleep 60'\r
expect 10 second-42
send \x1a
expect 10 Stopped
send kill -KILL %1; while [ "$(jobs -p)" ]; do sleep 0.1; done; echo killed-$((40+2))\r
expect 10 killed-42
expect 10 $ 
send exit 7\r
expect 10 exit
expect 10 $ 
send echo rc-$?\r
expect 10 rc-7
send exit 0\r
end 10 0
never no job control
X
    is_free
}

test_a_lost_lock_takes_the_shell_and_its_jobs() {
    on_terminal <<'X'
send holdfast run --max-hold 1s --kill-after 200ms x -- bash --norc --noprofile --noediting -i\r
send sh -c 'echo $$ >job; echo in-$((40+2)); exec sleep 60'\r
expect 10 in-42
expect 10 killed
expect 10 $ 
send echo rc-$?\r
expect 10 rc-80
send exit 0\r
end 10 0
X
    is_dead "$(cat job)"
}

test_a_background_job_that_reads_stops_until_fg() {
    on_terminal <<'X'
send holdfast run x -- sh -c 'echo in-$((40+2)); read a; echo got-$a-$((40+2))' &\r
expect 10 in-42
send until jobs | grep -q Stopped; do sleep 0.05; done; echo stop-$((40+2))\r
expect 10 stop-42
send fg\r
expect 10 holdfast run
send hello\r
expect 10 got-hello-42
send exit 0\r
end 10 0
X
}

test_a_running_background_job_gets_the_terminal_by_fg() {
    on_terminal <<'X'
send holdfast run x -- sh -c 'echo in-$((40+2)); until test $(ps -o tpgid= -p $$) -eq $(ps -o ppid= -p $PPID); do sleep 0.02; done; echo fore-$((40+2)); exec sleep 60' &\r
expect 10 in-42
send fg\r
expect 10 fore-42
send \x03
expect 10 $ 
send echo rc-$?\r
expect 10 rc-130
send exit 0\r
end 10 0
X
}

test_a_pager_behind_it_keeps_the_terminal() {
    on_terminal <<'X'
send holdfast run x -- sh -c 'echo data-$((40+2)); exec sleep 60' | sh -c 'head -n 1; read a </dev/tty; echo got-$a-$((40+2))'\r
expect 10 data-42
send hello\r
expect 10 got-hello-42
send \x03
expect 10 $ 
send echo rc-$?\r
expect 10 rc-
send holdfast run x -- sh -c 'read a </dev/tty; echo took-$a-$((40+2))' | cat\r
send hello\r
expect 10 took-hello-42
send exit 0\r
end 10 0
X
    is_free
}

test_the_terminal_is_mended_after_a_kill() {
    on_terminal <<'X'
send holdfast run x -- sh -c 'stty raw -echo; kill -KILL $$'\r
expect 10 $ 
send stty -a | grep -o ' icanon' | tr a-z A-Z\r
expect 10 ICANON
send exit 0\r
end 10 0
X
}

test_the_wait_is_shown_and_can_be_ended() {
    mkfifo end
    holdfast run --note 'nightly build' x -- sh -c 'echo in >in; cat end' &
    holder=$!
    eventually has_text in in
    on_terminal <<X
send holdfast run x true\r
expect 10 waiting for 'x': held by
expect 10 pid $holder
expect 10 number 1 of 1 in the queue; nightly build
send \x03
expect 10 $ 
send echo rc-\$?\r
expect 10 rc-130
send exit 0\r
end 10 0
X
    : >end
    ended_with 0 $holder
    is_free
}

test_a_session_leader_without_a_shell_is_not_stuck_by_ctrl_z() {
    in_script "$HOLDFAST" run x -- sh -c 'echo in; read a; echo got-$a; exit 3' <<'X'
expect 10 in
send \x1a
send hello\r
expect 10 got-hello
end 10 3
X
}

test_top_has_the_screen_until_q() {
    hf lock -q x --ttl 1m
    hf lock -q y --never-expires
    in_script "$HOLDFAST" top --interval 100ms <<'X'
expect 10 2 locks, 0 waiting; by age
expect 10 x
expect 10 y
send n
expect 10 by name
send l
expect 10 by left
send q
expect 10 \e[?1049l
end 10 0
X
    in_script "$HOLDFAST" top <<'X'
expect 10 2 locks
send \x03
expect 10 \e[?1049l
end 10 0
X
}

test_top_filters_by_what_is_typed() {
    hf lock -q only-this --ttl 1m
    hf lock -q other --ttl 1m
    in_script "$HOLDFAST" top --interval 1h <<'X'
expect 10 2 locks, 0 waiting
send /
expect 10 /_
send thisx\x7f
expect 10 1 lock of 2, 0 waiting; by age
expect 10   /this_
send \r
expect 10 (q)uit
send q
expect 10 \e[?1049l
end 10 0
X
}

test_top_lets_no_name_push_the_rest_off_the_screen() {
    hf lock -q "$(printf %0500d 0)" --ttl 1m
    hf lock -q "$(printf '\344\270\255%.0s' $(seq 100))" --ttl 1m
    in_script sh -c "stty cols 60 rows 10; exec $HOLDFAST top --interval 1h --sort name" <<'X'
expect 10 2 locks
expect 10 0000000000000000000000..  exclusive
expect 10 中中中中中中中中中中中..  exclusive
send q
expect 10 \e[?1049l
end 10 0
X
}

test_top_ends_while_the_store_does_not_answer() {
    hf lock -q held --ttl 1m
    in_script "$HOLDFAST" top --interval 100ms -u "fault+$HOLDFAST_URL?hang=inspect:2-&op_timeout=10m" <<'X'
expect 10 1 lock, 0 waiting
expect 10 no answer for 2s
send n
expect 10 by name
send \x03
expect 10 \e[?1049l
end 10 0
X
}

test_top_asks_no_more_often_for_a_key() {
    in_script "$HOLDFAST" top --interval 1h -u "trace+$HOLDFAST_URL?trace=$PWD/calls" <<'X'
expect 10 0 locks
send nlwanlwan
expect 10 by name
send w
expect 10 by waiting
send q
expect 10 \e[?1049l
end 10 0
X
    [ "$(grep -c inspect calls)" -eq 1 ]
}

test_top_shows_no_old_locks() {
    hf lock -q hidden --ttl 1m
    in_script "$HOLDFAST" top -u "fault+$HOLDFAST_URL?fail=inspect:*" <<'X'
expect 10 made to fail
send q
never hidden
end 10 0
X
}

. "$(dirname "$0")/harness.sh"
