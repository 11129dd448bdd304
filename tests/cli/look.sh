# ls, show, break, check: looking and mending.

is_free() {
    ! "$HOLDFAST" show -q "$1"
}

test_ls_of_an_empty_store_is_empty() {
    nothing_left
    hf ls --json
    status_is 0
    out_is_empty
}

test_ls_is_a_table_sorted_by_name() {
    hf lock -q b --ttl 1m --note 'for now'
    hf lock -q a --never-expires
    hf ls
    status_is 0
    out_has '^NAME +MODE +HELD BY +FOR +LEFT +WAITING +NOTE$'
    [ "$(sed -n 2p out | cut -c1)" = a ]
    sed -n 2p out | grep -q 'exclusive.*, pid [0-9]*, holdfast.*never expires'
    sed -n 3p out | grep -q '^b .* 0  *for now$'
    lacks out ' $'
}

test_ls_json_has_one_object_a_lock() {
    hf lock -q -s a --ttl 1m
    hf lock -q -s a --ttl 1m
    hf lock -q b --ttl 1m
    hf ls --json
    json 'map(.name) == ["a", "b"] and (.[0].holders | length == 2) and .[1].queue == []'
}

test_ls_prefix() {
    for name in job/1 job/2 other 'job%'; do
        hf lock -q "$name" --ttl 1m
    done
    hf ls --prefix job/ --json
    json 'map(.name) == ["job/1", "job/2"]'
    hf ls --prefix nothing --json
    out_is_empty
}

is_old() {
    "$HOLDFAST" ls --older-than 100ms --json | grep -q '"name":"x"'
}

test_ls_older_than() {
    hf lock -q x --ttl 1m
    hf ls --older-than 1h
    status_is 0
    out_is_empty
    eventually is_old
}

test_ls_fail_is_for_alerts() {
    hf ls --fail
    status_is 0
    hf lock -q x --ttl 1m
    hf ls --fail
    status_is 1
    out_has '^x '
    hf ls --fail --older-than 1h
    status_is 0
    out_is_empty
    eventually is_old
    hf ls --fail --older-than 100ms --json
    status_is 1
    json '.[0].name == "x"'
    hf ls --fail -u "fault+$HOLDFAST_URL?fail=*:*"
    refused 69 'made to fail'
}

# Two programs that take two locks in different orders; a third only waits.
test_ls_cycles_tells_a_deadlock() {
    mkfifo first second
    "$HOLDER" "$HOLDFAST_URL" <first >first.out &
    "$HOLDER" "$HOLDFAST_URL" <second >second.out &
    exec 8>first 9>second
    echo 'take a' >&8
    echo 'take b' >&9
    eventually grep -q ok first.out
    eventually grep -q ok second.out
    echo 'take b' >&8
    eventually queue_of b 1
    hf ls --cycles --fail
    status_is 0
    out_is_empty
    echo 'take a' >&9
    eventually queue_of a 1
    hf ls --cycles
    status_is 0
    out_has "^deadlock: .*, pid [0-9]+, holder holds '[ab]' and waits for '[ab]' since "
    [ "$(wc -l <out)" -eq 2 ]
    hf ls --cycles --fail --json
    status_is 1
    json '(.[0].cycle | length == 2 and (map(.holds) | sort) == ["a", "b"]
          and all(.holder.pid == .waiter.pid and .waiter.place == "waiting" and .holds != .waits_for))'
    hf ls --cycles --prefix a
    out_is_empty
    hf break a --now --ticket "$("$HOLDFAST" show --json a | jq -r '.holders[0].ticket')"
    eventually queue_of a 0
    hf ls --cycles --fail
    status_is 0
    exec 8>&- 9>&-
    wait
}

test_ls_cycles_needs_the_waiters() {
    hf ls --cycles --older-than 1h
    refused 64 '--cycles needs the waiters'
}

test_show_quotes_the_name() {
    hf show 'a name'
    status_is 1
    out_is "'a name' is free"
}

test_break_takes_a_unique_prefix() {
    hf lock -q -s x --ttl 1m
    first=$(cat out)
    hf lock -q -s x --ttl 1m
    second=$(cat out)
    length=4
    until [ "$(echo "$first" | cut -c1-$length)" != "$(echo "$second" | cut -c1-$length)" ]; do
        length=$((length + 1))
    done
    hf break x --now --ticket "$(echo "$first" | cut -c1-$length | tr a-f A-F)"
    status_is 0
    hf show --json x
    json ".[0].holders | map(.ticket) == [\"$second\"]"
    hf break x --ticket 123
    refused 64 "32 hexadecimal digits, not '123'; the first four will do"
    hf break x --ticket "$(echo "$second" | cut -c1-6 | tr 0-9a-f 1-9a-f0)"
    refused 1 'no ticket begins with'
    hf unlock x --ticket "$(echo "$second" | cut -c1-8)"
    refused 64 '32 hexadecimal digits'
}

# Tickets are random: two that begin alike are made in the database.
test_break_refuses_a_prefix_of_two() {
    command -v sqlite3 >/dev/null || skip 'there is no sqlite3'
    hf lock -q -s x --ttl 1m
    hf lock -q -s x --ttl 1m
    column=$(sqlite3 store/locks.db "SELECT m.name || '.' || p.name FROM sqlite_master m, pragma_table_info(m.name) p
        WHERE p.name = 'ticket' AND m.type = 'table' LIMIT 1")
    [ -n "$column" ] || skip 'the tickets are kept otherwise'
    sqlite3 store/locks.db "UPDATE ${column%.*} SET ticket = CAST(X'ABCDEF' || substr(ticket, 4) AS BLOB)" || skip 'they cannot be changed'
    hf show --json x
    jq -r '.holders[].ticket' out | grep -c '^abcdef' >count || :
    [ "$(cat count)" -eq 2 ] || skip 'the tickets are kept otherwise'
    hf break x --ticket abcdef
    refused 64 "2 tickets begin with 'abcdef'; write more of it"
}

test_show_tells_holders_and_queue() {
    hf lock -q x --ttl 1m --note why
    ticket=$(cat out)
    "$HOLDFAST" lock -q x --ttl 1m >second 2>&1 &
    pid=$!
    eventually queue_of x 1
    hf show x
    status_is 0
    out_has "^inside +exclusive +$ticket +[0-9]+ .* why$"
    out_has '^waiting, place 1 +exclusive +[0-9a-f]{32} +- '
    hf show x --json
    json '.[0] | .free == false and (.holders[0] | .place == "inside" and .ttl_ms == 60000 and .claimed
          and (.generation | type == "string") and .note == "why") and (.queue[0] | .position == 1
          and .generation == null)'
    kill "$pid"
    wait "$pid" || :
}

queue_of() {
    [ "$("$HOLDFAST" show --json "$1" | jq '.queue | length')" = "$2" ]
}

test_show_of_a_free_lock() {
    hf show x
    status_is 1
    out_is "'x' is free"
    hf show -q x
    status_is 1
    out_is_empty
    hf show --json x
    status_is 1
    json '.[0] == {name: "x", free: true, holders: [], queue: []}'
}

test_break_keeps_a_lease_closed_until_it_ends() {
    hf lock -q x --ttl 1m
    ticket=$(cat out)
    hf break x --ticket "$ticket"
    status_is 0
    out_has "^broken: .*, pid [0-9]+, holdfast no longer holds 'x'; it stays closed for "
    hf show x --json
    json '.[0].holders[0].place == "lingering"'
    hf lock x -nq --ttl 1m
    status_is 1
    hf renew x --ticket "$ticket"
    refused 1 'no longer, held'
    hf break x --ticket "$ticket" --now
    status_is 0
    nothing_left
}

test_break_of_a_lock_that_never_expires() {
    hf lock -q x --never-expires
    ticket=$(cat out)
    hf break x --ticket "$ticket" --json
    status_is 0
    json ".[0] | .name == \"x\" and .ticket == \"$ticket\" and .now == false and .closed_ms == 0
          and .was.place == \"inside\""
    nothing_left
    hf break x --ticket "$ticket"
    refused 1 'no such lock or ticket'
}

test_break_takes_the_place_of_a_waiter() {
    hf lock -q x --ttl 1m
    "$HOLDFAST" lock -q x --ttl 1m -w 20s >second 2>&1 &
    pid=$!
    eventually queue_of x 1
    waiter=$("$HOLDFAST" show --json x | jq -r '.queue[0].ticket')
    hf break x --ticket "$waiter"
    status_is 0
    out_has '^broken: .* has lost its place in the queue; if it still wants the lock, it goes to the end$'
    eventually queue_of x 1
    hf show x --json
    json ".[0] | (.holders | length == 1) and .queue[0].ticket != \"$waiter\""
    kill "$pid" 2>/dev/null || :
    wait "$pid" || :
}

test_break_respects_the_lock_delay() {
    hf lock -q x --ttl 1m --lock-delay 1m
    ticket=$(cat out)
    hf break x --ticket "$ticket" --now --json
    status_is 0
    json '.[0].closed_ms > 30000'
    hf lock x -nq --ttl 1m
    status_is 1
}

test_check_tells_current_from_stale() {
    hf lock x --ttl 1m --json
    sequencer=$(jq -r .sequencer out) ticket=$(jq -r .ticket out)
    hf check "$sequencer"
    status_is 0
    out_is current
    hf check -q "$sequencer"
    status_is 0
    out_is_empty
    hf unlock x --ticket "$ticket"
    hf check "$sequencer"
    status_is 1
    out_is stale
    hf check --json "$sequencer"
    status_is 1
    json ".[0] == {sequencer: \"$sequencer\", current: false}"
}

test_check_refuses_what_is_no_sequencer() {
    for bad in '' x hf1:x:0::x 'hf1:q:5::x' 'hf1:x:5::'; do
        hf check "$bad"
        refused 64 '.'
    done
}

test_any_bytes_can_be_a_name() {
    for name in "'; DROP TABLE holdfast_lock; --" '../../etc' '%' '%41' '{}' ' x' 'x ' X "$(printf 'a\tb\033[31m')" \
        "$(printf 'bad\377utf8')" 'é' "$(printf '\342\200\256evil')"; do
        hf lock -q "$name" --ttl 1m
        status_is 0
        hf show -q "$name"
        status_is 0
        hf lock -nq "$name" --ttl 1m
        status_is 1
    done
    hf show -q x
    status_is 1
    hf show -q A
    status_is 1
    hf ls --json
    json 'length == 12 and (map(.name) | unique | length == 12)'
    jq -r .name out | grep -qx 'bad%FFutf8'
    jq -r .name out | grep -qx '%2541'
}

test_strange_names_do_not_reach_the_terminal() {
    hf lock -q "$(printf 'a\033[31m\342\200\256\377%% ')" --ttl 1m --note "$(printf 'n\007\n100%%')"
    hf ls
    out_has '^a%1B\[31m%E2%80%AE%FF%25%20 '
    out_has ' n%07%0A100%$'
    lacks out "$(printf '[\007\033]')"
    hf ls --json
    json '.[0].holders[0].note == "n\u0007\n100%25"'
}

test_columns_are_aligned_by_width() {
    hf lock -q 'é日本' --ttl 1m
    hf lock -q plain --ttl 1m
    hf ls
    python3 - <<'END'
import unicodedata
def column(line):
    at = line.index("exclusive")
    return sum(2 if unicodedata.east_asian_width(c) == "W" else 1 for c in line[:at])
lines = open("out", encoding="utf-8").read().splitlines()[1:]
assert len({column(line) for line in lines}) == 1, lines
END
}

test_colours_only_when_asked_or_on_a_terminal() {
    hf lock -q x --ttl 1m
    escape=$(printf '\033')
    hf ls
    lacks out "$escape"
    hf ls --color always
    out_has "^$escape\[1mNAME"
    script -qc "'$HOLDFAST' ls" terminal >/dev/null </dev/null
    grep -q "$escape" terminal
    NO_COLOR=1 script -qc "'$HOLDFAST' ls" terminal >/dev/null </dev/null
    lacks terminal "$escape"
    script -qc "'$HOLDFAST' ls --color never" terminal >/dev/null </dev/null
    lacks terminal "$escape"
}

test_a_name_is_written_alike_in_a_list_and_in_a_sentence() {
    name=$(printf ' 100%% \303\251\n"x y" ')
    shown='%20100%25 é%0A"x y"%20'
    hf lock -q --ttl 1m "$name"
    hf ls
    out_has "^$shown  "
    hf lock -n --ttl 1m "$name"
    refused 1 "acquire '$shown'"
    hf unlock "$name" --ticket 00000000000000000000000000000000
    refused 1 "'$shown'"
    hf run --max-hold 1ms "$name-" -- sleep 60
    refused 80 "'%20100%25 é%0A\"x y\" -' is"
}

test_older_than_does_not_say_that_nobody_waits() {
    hf lock -q --never-expires x
    hf ls --older-than 1ms --json
    json '.[0].queue == null'
    hf ls --json
    json '.[0].queue == []'
}

test_a_look_that_is_not_answered_has_no_outcome() {
    for verb in ls 'show x' 'check hf1:x:1::x'; do
        # shellcheck disable=SC2086
        hf -u "fault+$HOLDFAST_URL?lose=inspect:*" $verb
        refused 69 'the answer was lost|made to'
    done
}

has_lines() {
    [ "$(wc -l <"$1")" -ge "$2" ]
}

test_c18_watch_prints_each_change() {
    "$HOLDFAST" watch --interval 20ms --count 3 x >lines &
    eventually has_lines lines 1
    hf lock -q x --ttl 1m --note 'a note'
    eventually has_lines lines 2
    hf unlock x --ticket "$(cat out)"
    wait "$!"
    sed -n 1p lines | grep -Eq '^[0-9T:-]+Z  free$'
    sed -n 2p lines | grep -Eq '  held by .*, pid [0-9]+, holdfast \(a note\), since .*Z, token [0-9]+$'
    sed -n 3p lines | grep -q '  free$'
}

ends_free() {
    tail -n 1 "$1" | grep -Eq "$2"
}

test_c18_watch_tells_the_value_of_the_present_holder() {
    "$HOLDFAST" watch --value --interval 20ms x >lines &
    lines=$!
    "$HOLDFAST" watch --value --interval 20ms --json x >out &
    objects=$!
    "$HOLDFAST" run --value 'host "a":1' x -- sh -c 'until [ -e enough ]; do sleep 0.05; done' &
    eventually grep -q '  held by .*; value "host \\"a\\":1"$' lines
    eventually grep -q '"live":true' out
    touch enough
    eventually ends_free lines '  free$'
    eventually ends_free out '"free":true.*"live":false'
    kill "$lines" "$objects"
    json 'map(select(.live).value) | unique == ["host \"a\":1"]'
}

test_c18_watch_json_is_that_of_show() {
    hf lock -q x --ttl 1m
    hf watch --count 1 --json x
    status_is 0
    json '.[0].name == "x" and .[0].holders[0].place == "inside" and .[0].queue == []'
    hf watch x y
    refused 64 'too many operands'
    hf watch --interval 1ms x
    refused 64 'interval'
}

test_c18_watch_outlasts_a_store_that_is_away() {
    hf watch -u "fault+$HOLDFAST_URL?fail=inspect:2-4" --interval 20ms --count 2 x
    status_is 0
    [ "$(grep -c free out)" -eq 2 ]
    [ "$(wc -l <err)" -eq 1 ]
    err_has 'made to fail.*; still watching$'
    hf watch -u "fault+$HOLDFAST_URL?fail=inspect:2-4" --interval 20ms --count 2 --json x
    json 'map(.error) == [null, "HF_UNAVAILABLE", null]'
    hf watch -u "fault+$HOLDFAST_URL?fail=inspect:1" x
    refused 69 'made to fail'
}

test_top_once_is_sorted() {
    hf top --once
    status_is 0
    out_is_empty
    hf lock -q b --ttl 1m
    hf lock -q a --never-expires
    hf top
    sed -n 2p out | grep -q '^b '
    hf top --once --sort name
    sed -n 2p out | grep -q '^a '
    hf top --sort left --json
    json 'map(.name) == ["b", "a"]'
    "$HOLDFAST" lock -q a --ttl 1m -w 1m >/dev/null 2>&1 &
    eventually waits_for a
    hf top --sort waiting
    sed -n 2p out | grep -Eq '^a .* 1 *$'
    kill "$!"
    hf top --prefix b
    lacks out '^a '
    hf lock -q "$(printf 'one\033[2Jtwo')" --ttl 1m
    hf top --filter 2Jt --json
    json 'map(.name) == ["one\u001b[2Jtwo"]'
    hf top --filter nothing
    status_is 0
    out_is_empty
    hf top --filter "$(printf %070d 0)"
    refused 64 'filter is too long'
    hf top -u "fault+$HOLDFAST_URL?fail=inspect:*"
    refused 69 'made to fail'
}

test_log_says_who_held_it() {
    url="$HOLDFAST_URL?history=20"
    hf log -u "$url"
    status_is 0
    out_is_empty
    hf run -u "$url" x -- true
    hf lock -q -u "$url" y --ttl 1m --note 'for now'
    hf log
    status_is 0
    out_has '^TIME +NAME +WHAT +MODE +HELD +WAITED +TOKEN +WHO +NOTE$'
    out_has '^20[^ ]* +x +released +exclusive '
    hf log --json
    json 'map([.name, .what]) == [["x", "granted"], ["x", "released"], ["y", "granted"]]'
    json '.[1] | .held_ms >= 0 and .waited_ms == null and .cause == null and (.generation | length > 10)'
    hf log --json y
    json 'length == 1 and .[0].note == "for now" and .[0].host != "" and .[0].pid > 0'
    hf log --json --limit 1
    json 'map(.name) == ["y"]'
    hf log --json --prefix x --since 1h
    json 'map(.what) == ["granted", "released"]'
    hf log --until 1h
    out_is_empty
}

test_log_at_a_moment() {
    url="$HOLDFAST_URL?history=20"
    hf lock -q -u "$url" x --ttl 1m
    hf log --json --at "$(date -u -d '1 second' +%Y-%m-%dT%H:%M:%SZ)" x
    status_is 0
    json 'map(.what) == ["granted"]'
    hf log --at 1h x
    refused 1 'nobody is known to have held it then'
    hf log -q --at 2001-02-03 x
    status_is 1
}

test_log_refuses_what_is_no_moment() {
    for when in noon 25:00 2026-13-01 -1 '' 03:12x 9999999999999d; do
        hf log --at "$when"
        refused 64 'is no moment'
    done
    hf log --at 1h --since 2h
    refused 64 'does not go with'
    hf log a b
    refused 64 'give one name'
    hf log -u 'memory://x?history=10001'
    refused 64 "option 'history' is '10001': it must be from 0 to 10000"
}

test_log_at_is_the_last_time_it_was_so_late() {
    export TZ=Asia/Tokyo
    url="$HOLDFAST_URL?history=20"
    hf run -u "$url" x -- true
    hf log --json --since "$(date +%H:%M)" x
    json 'length == 2'
    hf log x
    out_has '^20[^ ]*[+]09:00 '
    hf log --since "$(date -d '1 hour' +%H:%M)" --until "$(date +%H:%M)" x
    out_is_empty
    unset TZ
}

waits_for() {
    "$HOLDFAST" show --json "$1" | grep -q '"waiting"'
}

test_lease_ends_by_itself() {
    hf lock -q x --ttl 100ms
    eventually is_free x
    nothing_left
}

. "$(dirname "$0")/harness.sh"
