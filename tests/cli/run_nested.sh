# holdfast inside the command of `holdfast run`: it finds the same store, wherever it stands and
# whatever is secret about the URL.
. "$(dirname "$0")/run_lib.sh"

# What the command does: it looks at its own grant, takes another lock, and is refused its own.
ask='
holdfast check "$HOLDFAST_SEQUENCER" >/dev/null || exit 10
holdfast run -n y -- holdfast check "$HOLDFAST_SEQUENCER" >/dev/null || exit 11
holdfast run -n x -- true 2>err; [ $? -eq 64 ] || exit 12
holdfast lock -q z --ttl 1m >ticket || exit 13
holdfast renew -q z --ticket-file ticket >/dev/null || exit 14
holdfast unlock z --ticket-file ticket || exit 15'

test_a_relative_url_is_the_same_file_after_cd() {
    mkdir sub 'a b%'
    cd 'a b%'
    for url in sqlite:locks.db sqlite:../sub/locks.db 'trace+sqlite:locks.db?trace=lines'; do
        gives 0 holdfast -u "$url" run x -- sh -c "cd / && cd '$PWD/../sub' && $ask"
    done
    absent ../sub/lines
    exists lines
    HOLDFAST_URL=sqlite:locks.db
    export HOLDFAST_URL
    gives 0 holdfast run x -- sh -c "cd / && case \$HOLDFAST_URL in sqlite:/*a%20b%25/locks.db) ;; *) exit 9 ;; esac"
}

test_a_relative_file_in_an_option_is_the_same_after_cd() {
    holdfast -u 'trace+sqlite:store/locks.db?op_timeout=1s&trace=t' run x -- sh -c 'echo "$HOLDFAST_URL"' >out
    [ "$(cat out)" = "trace+sqlite:$PWD/store/locks.db?op_timeout=1s&trace=$PWD/t" ] || fail "$(cat out)"
    holdfast -u "trace+$HOLDFAST_URL?trace=fd:2" run x -- sh -c 'echo "$HOLDFAST_URL"' >out 2>/dev/null
    [ "$(cat out)" = "trace+$HOLDFAST_URL?trace=fd:2" ] || fail "$(cat out)"
}

test_the_embedded_store_is_the_same_with_another_home() {
    [ "$(id -u)" -ne 0 ] || command -v setpriv >/dev/null || skip 'there is no setpriv'
    unset HOLDFAST_URL
    user=
    if [ "$(id -u)" -eq 0 ]; then
        chmod 755 .
        mkdir home
        chown 65534 home
        HOME=$PWD/home user='setpriv --reuid 65534 --regid 65534 --clear-groups'
    fi
    # shellcheck disable=SC2086
    gives 0 $user "$HOLDFAST" run x -- sh -c 'HOME=/nowhere XDG_STATE_HOME=/nowhere holdfast check "$HOLDFAST_SEQUENCER" >/dev/null'
}

test_a_password_works_inside_and_is_not_seen() {
    HOLDFAST_URL=sqlite://me:s3cret@$PWD/store/locks.db
    export HOLDFAST_URL
    mkdir elsewhere
    gives 0 holdfast run x -- sh -c "env >seen; tr '\\0' '\\n' </proc/\$PPID/cmdline >>seen; cd elsewhere; $ask"
    lacks seen s3cret
    grep -q '^HOLDFAST_URL=sqlite://me:\*\*\*@/' seen
    grep -q '^HOLDFAST_HANDED_DOWN=/proc/[0-9]*/fd/[0-9]*$' seen
}

test_a_password_goes_through_two_runs_and_a_closed_table_of_descriptors() {
    HOLDFAST_URL=sqlite://me:s3cret@$PWD/store/locks.db
    export HOLDFAST_URL
    gives 0 holdfast run w -- holdfast run x -- bash -c 'for fd in /proc/$$/fd/*; do
        n=${fd##*/}; [ "$n" -le 2 ] || eval "exec $n>&-"; done
        holdfast check "$HOLDFAST_SEQUENCER" >/dev/null'
}

test_a_password_in_a_variable_works_inside() {
    hf stores redis
    ! grep -q missing out || skip 'the module redis is not there'
    command -v redis-server >/dev/null || skip 'there is no redis-server'
    redis-server --port 0 --unixsocket "$PWD/sock" --requirepass s3cret --save '' --dir "$PWD" >/dev/null &
    server=$!
    eventually test -S sock
    HUSH=s3cret HOLDFAST_URL="redis+unix://$PWD/sock?password_env=HUSH"
    export HUSH HOLDFAST_URL
    got=0
    holdfast run x -- sh -c 'env >seen; holdfast check "$HOLDFAST_SEQUENCER" >/dev/null && holdfast run y true' || got=$?
    kill $server
    [ "$got" -eq 0 ] || fail "status $got"
    lacks seen s3cret
}

test_a_password_is_gone_with_the_run() {
    HOLDFAST_URL=sqlite://me:s3cret@$PWD/store/locks.db
    export HOLDFAST_URL
    holdfast run x -- sh -c 'env | grep ^HOLDFAST_ >environment'
    set -a
    . ./environment
    set +a
    hf check "$HOLDFAST_SEQUENCER"
    refused 64 'has its password removed'
}

test_only_the_memory_of_a_run_is_believed() {
    HOLDFAST_URL='sqlite://me:***@/elsewhere/locks.db' HOLDFAST_HANDED_DOWN=$PWD/forged
    export HOLDFAST_URL HOLDFAST_HANDED_DOWN
    printf 'HOLDFAST_URL=sqlite://me:s3cret@/elsewhere/locks.db\0' >forged
    hf ls
    refused 64 'has its password removed'
    HOLDFAST_HANDED_DOWN=/proc/self/fd/0
    status=0
    "$HOLDFAST" ls <forged >out 2>err || status=$?
    refused 64 'has its password removed'
}

test_another_url_is_not_given_the_password() {
    HOLDFAST_URL=sqlite://me:s3cret@$PWD/store/locks.db
    export HOLDFAST_URL
    gives 64 holdfast run x -- sh -c 'HOLDFAST_URL="sqlite://me:***@/tmp/other.db" holdfast ls 2>err'
    grep -q 'has its password removed' err
}

test_a_check_that_could_not_be_made_is_not_a_no() {
    hf check nonsense
    status_is 64
    sequencer=$(holdfast run x -- sh -c 'echo "$HOLDFAST_SEQUENCER"')
    hf check "$sequencer"
    status_is 1
    out_is stale
    hf -u "fault+$HOLDFAST_URL?fail=*:*" check "$sequencer"
    refused 69 'made to fail'
    HOLDFAST_URL="sqlite://me:***@$PWD/store/locks.db"
    hf check "$sequencer"
    refused 64 'has its password removed'
}

# A core has the password in it: the wrapper and the guard leave none. The command does as it would without us.
test_a_crash_leaves_no_core_of_ours() {
    # shellcheck disable=SC3045 # every sh we know has -c
    ulimit -c unlimited 2>/dev/null || skip 'core files are not allowed here'
    export ASAN_OPTIONS="${ASAN_OPTIONS-}:disable_coredump=0" # or the sanitizer sets that limit to 0 itself
    gives 0 holdfast run x -- sh -c 'ulimit -c; grep -h "core file" /proc/$PPID/limits' >out
    [ "$(sed -n 1p out)" = unlimited ] || fail 'the command may leave none'
    sed -n 2p out | grep -Eq 'size +1 ' || fail 'the guard would leave one'
    gives 0 holdfast run --no-guard x -- sh -c 'grep -h "core file" /proc/$PPID/limits' >out
    grep -Eq 'size +1 ' out || fail 'the wrapper would leave one'
}

test_c11_a_reader_inside_a_reader_is_let_in() {
    gives 0 holdfast run -s x -- holdfast run -s x -- holdfast run -s x true
    gives 0 holdfast run --limit 2 x -- holdfast run --limit 2 x true
    gives 64 holdfast run -s x -- holdfast run x true 2>err
    grep -q 'would wait for itself' err
    gives 64 holdfast run x -- holdfast run -s x true 2>err
    grep -q 'would wait for itself' err
}

test_c11_a_reader_inside_a_reader_does_not_wait_for_itself() {
    gives 64 holdfast run --limit 1 x -- holdfast run --limit 1 x true 2>err
    grep -q 'would wait for itself' err
    holdfast run -s x -- sh -c ': >in; until test -e go; do sleep 0.01; done; holdfast run -s x true' 2>err &
    reader=$!
    eventually test -e in
    holdfast run x true &
    writer=$!
    eventually waits
    : >go
    ended_with 64 $reader
    grep -q 'would wait for itself' err
    ended_with 0 $writer
}

. "$(dirname "$0")/harness.sh"
