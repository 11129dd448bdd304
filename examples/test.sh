#!/bin/sh
# Runs one example on a store of its own and says whether it did what it shows.
#
#     test.sh DIRECTORY-OF-THE-COMMAND EXAMPLE
#
# A compiled example checks itself. A script is played through: two of them at once, where that is its
# point, with files as signals between them.
set -eu

PATH=$1:$PATH
example=$2
dir=$(mktemp -d)
started=
# shellcheck disable=SC2086 # a list of words
trap '[ -z "$started" ] || kill $started 2>/dev/null || :; rm -rf "$dir"' EXIT
HOLDFAST_URL=sqlite:$dir/locks.db
export PATH HOLDFAST_URL dir

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# Waits until the command succeeds; gives up after ten seconds.
await() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -le 500 ] || fail "did not come true: $*"
        sleep 0.02
    done
}

# A job that says it has started and ends when it is told to.
cat >"$dir/job" <<'END'
#!/bin/sh
echo "$1" >>"$dir/ran"
touch "$dir/started.$1"
until [ -e "$dir/end.$1" ]; do sleep 0.02; done
END
chmod +x "$dir/job"

play_nightly() {
    "$example" "$dir/job" a >"$dir/a.out" &
    started=$!
    await test -e "$dir/started.a"
    "$example" "$dir/job" b >"$dir/b.out" 2>&1 || fail "that it is being done looks like a failure"
    touch "$dir/end.a"
    wait "$started" || fail "the first one failed"
    "$example" "$dir/job" c >>"$dir/b.out" 2>&1 || fail "that it is done looks like a failure"
    [ ! -s "$dir/b.out" ] || fail "they said: $(cat "$dir/b.out")"
    [ "$(cat "$dir/ran")" = a ] || fail "ran: $(cat "$dir/ran")"
    # The next day. A job that fails does not count.
    ticket=$(holdfast show --json nightly/report | sed 's/.*"ticket":"\([0-9a-f]*\)".*/\1/')
    holdfast break --now --ticket "$ticket" nightly/report >/dev/null || fail "cannot break $ticket"
    "$example" sh -c 'exit 7' 2>/dev/null && fail "a failing job looks well"
    touch "$dir/end.d"
    "$example" "$dir/job" d || fail "after a failure it was not tried again"
    [ "$(cat "$dir/ran")" = "$(printf 'a\nd')" ] || fail "ran: $(cat "$dir/ran")"
}

play_checkpoint() {
    printf 'one\ntwo\n' >"$dir/log"
    "$example" "$dir/log" tee -a "$dir/seen" >/dev/null || fail "the first run"
    printf 'three\n' >>"$dir/log"
    "$example" "$dir/log" sh -c 'cat >/dev/null; exit 3' 2>"$dir/err" && fail "a failing job looks well"
    "$example" "$dir/log" tee -a "$dir/seen" >/dev/null 2>>"$dir/err" || fail "the second run"
    [ "$(cat "$dir/seen")" = "$(printf 'one\ntwo\nthree')" ] || fail "seen: $(cat "$dir/seen")"
    [ "$(holdfast value checkpoint/log)" = 14 ] || fail "it is at $(holdfast value checkpoint/log)"
    [ ! -s "$dir/err" ] || fail "it said: $(cat "$dir/err")"
    "$example" "$dir/log" tee -a "$dir/seen" >/dev/null || fail "nothing new"
    [ "$(wc -l <"$dir/seen")" -eq 3 ] || fail "a line came twice"
}

somebody_waits() {
    holdfast show --json leader/my-service | grep -q '"waiting"'
}

play_leader() {
    "$example" "$dir/job" a &
    first=$!
    started=$first
    await test -e "$dir/started.a"
    "$example" "$dir/job" b &
    second=$!
    started="$first $second"
    await somebody_waits
    [ ! -e "$dir/started.b" ] || fail "two leaders"
    touch "$dir/end.a" "$dir/end.b"
    wait $first || fail "the first leader failed"
    wait $second || fail "the second leader failed"
    [ "$(cat "$dir/ran")" = "$(printf 'a\nb')" ] || fail "ran: $(cat "$dir/ran")"
    end_leader_by_term
    # A service that fails is started again; a mistake is told.
    "$example" sh -c 'echo tried >>"$dir/tries"; [ "$(wc -l <"$dir/tries")" -ge 2 ]' 2>"$dir/err" || fail "it was not tried again"
    grep -q 'ended with status 1' "$dir/err" || fail "it said: $(cat "$dir/err")"
    status=0
    "$example" no-such-command 2>"$dir/err" || status=$?
    [ $status -eq 127 ] || fail "a command that is not there gives $status"
}

# TERM ends the service, with what it has started, and gives the lock back; a standby just leaves.
end_leader_by_term() {
    cat >"$dir/service" <<'END'
#!/bin/sh
exec 2>/dev/null
setsid sh -c 'echo $$ >"$dir/worker"; exec sleep 60' &
trap 'kill $!; exit 0' TERM
echo $$ >"$dir/service.pid"
while :; do sleep 0.02; done
END
    chmod +x "$dir/service"
    "$example" "$dir/service" 2>"$dir/err" &
    first=$!
    await test -s "$dir/service.pid"
    await test -s "$dir/worker"
    "$example" "$dir/job" c &
    second=$!
    started="$first $second"
    await somebody_waits
    kill $second
    wait $second && fail "a standby that was told to go looks well"
    kill $first
    wait $first || fail "the leader was told to go, its service ended well, and it gave $?"
    kill -0 "$(cat "$dir/service.pid")" 2>/dev/null && fail "the service is still there"
    [ -z "$(holdfast ls)" ] || fail "left behind: $(holdfast ls)"
    [ ! -e "$dir/started.c" ] || fail "the standby took over"
    [ ! -s "$dir/err" ] || fail "it said: $(cat "$dir/err")"
}

play_deploy() {
    "$example" web1 web2 >"$dir/out" || fail "it stopped"
    [ "$(grep -c '^deploying to web[12] under token [0-9]*$' "$dir/out")" = 2 ] || fail "$(cat "$dir/out")"
    # With the sequencer of a turn that is over it stops.
    # shellcheck disable=SC2016 # for the inner shell
    old=$(holdfast run deploy/production -- sh -c 'echo "$HOLDFAST_SEQUENCER"')
    HOLDFAST_NAME=deploy/production HOLDFAST_SEQUENCER=$old HOLDFAST_TOKEN=1
    export HOLDFAST_NAME HOLDFAST_SEQUENCER HOLDFAST_TOKEN
    "$example" web1 2>"$dir/err" && fail "an old sequencer was good enough"
    grep -q '^it is no longer our turn' "$dir/err" || fail "$(cat "$dir/err")"
    # A store that cannot be asked has not said no.
    HOLDFAST_URL=sqlite:/nowhere/at/all/locks.db "$example" web1 2>"$dir/err" && fail "nobody was asked"
    [ $? -eq 69 ] && grep -q '^cannot ask whether it is our turn' "$dir/err" || fail "$(cat "$dir/err")"
}

case ${example##*/} in
nightly.sh) play_nightly ;;
checkpoint.sh) play_checkpoint ;;
leader.sh) play_leader ;;
deploy.sh) play_deploy ;;
*) "$example" "$HOLDFAST_URL" ;;
esac
