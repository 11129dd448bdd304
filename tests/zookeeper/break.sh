#!/bin/sh
# The command and a lock that is broken (C7): break.sh HOLDFAST URL. The holder's child is killed long
# before its renewal, its node goes; a dead holder's node goes with --now.
set -eu
holdfast=$1
HOLDFAST_URL=$2
export HOLDFAST_URL
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# hold NAME: holds it in the background by a child that tells its process id; sets run_pid, child and ticket.
hold() {
    mkfifo "$dir/$1"
    # shellcheck disable=SC2016 # for the child's shell
    "$holdfast" run --ttl 60s "$1" -- sh -c 'echo $$ >"$0"; exec sleep 120' "$dir/$1" 2>"$dir/$1.err" &
    run_pid=$!
    read -r child <"$dir/$1"
    ticket=$("$holdfast" --json show "$1" | sed 's/.*"ticket":"\([0-9a-f]*\)".*/\1/')
    [ ${#ticket} = 32 ] || fail "$1 has no ticket"
}

is_free() { "$holdfast" run --wait 0 "$1" -- true 2>/dev/null; }

# The holder lives: it is asked to leave.
hold asked
began=$(date +%s)
"$holdfast" break asked --ticket "$ticket" || fail "break of a live holder"
status=0
wait "$run_pid" || status=$?
[ "$status" = 80 ] || fail "the holder ended with $status: $(cat "$dir/asked.err")"
[ $(($(date +%s) - began)) -lt 10 ] || fail "it was told with its renewal, not by the watch"
kill -0 "$child" 2>/dev/null && fail "its child lives"
is_free asked || fail "its node is still there"

# The holder is dead: only its session keeps the lock.
hold dead
kill -9 "$run_pid"
wait "$run_pid" 2>/dev/null || true
is_free dead && fail "a dead holder's lock opened before its session ended"
"$holdfast" break dead --ticket "$ticket" --now || fail "break of a dead holder"
is_free dead || fail "--now did not delete the node"
echo ok
