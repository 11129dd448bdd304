# A small harness for tests of the command. A test file defines functions test_<rule> and ends with
#
#       . "$(dirname "$0")/harness.sh"
#
# Each runs in a process and a directory of its own, with -e: the first line that fails, fails the
# test. The environment names the command (HOLDFAST) and what belongs to it: see meson.build.
#
#   hf ARG...         runs the command; $status is its exit status, its output in the files out and err
#   status_is N       out_is TEXT    out_has ERE    err_has ERE    out_is_empty    err_is_empty
#   refused N ERE     status N, nothing on stdout, one sentence on stderr that matches
#   json FILTER       jq filter that must be true of the output, every line of which must be an object
#   exists FILE    absent FILE    lacks FILE ERE
#   skip REASON       the test cannot be made here
#   eventually CMD    tries a command until it succeeds, for at most 10 s
#   nothing_left      nobody holds or waits in the store
#
# Mind that -e overlooks a line that begins with "!", and all but the last of "a && b".

fail() {
    printf '    %s\n' "$*" "stdout: $(cat out 2>/dev/null)" "stderr: $(cat err 2>/dev/null)"
    exit 1
}

hf() {
    status=0
    "$HOLDFAST" "$@" >out 2>err </dev/null || status=$?
    last="holdfast $*"
}

status_is() {
    [ "$status" -eq "$1" ] || fail "$last: exit status $status, not $1"
}

out_is() {
    [ "$(cat out)" = "$1" ] || fail "$last: stdout is not '$1'"
}

out_has() {
    grep -Eq -e "$1" out || fail "$last: stdout does not match '$1'"
}

err_has() {
    grep -Eq -e "$1" err || fail "$last: stderr does not match '$1'"
}

out_is_empty() {
    [ ! -s out ] || fail "$last: stdout is not empty"
}

err_is_empty() {
    [ ! -s err ] || fail "$last: stderr is not empty"
}

exists() {
    [ -e "$1" ] || fail "$last: there is no $1"
}

absent() {
    [ ! -e "$1" ] || fail "$last: there is a $1"
}

lacks() {
    if grep -Eq -e "$2" "$1"; then
        fail "$last: $1 has '$2'"
    fi
}

skip() {
    echo "$*"
    exit 77
}

refused() {
    status_is "$1"
    out_is_empty
    [ "$(wc -l <err)" -eq 1 ] || fail "$last: stderr is not one line"
    err_has '^holdfast: '
    err_has "$2"
}

json() {
    jq -es 'length > 0 and all(type == "object")' <out >/dev/null || fail "$last: not JSON objects"
    [ "$(wc -l <out)" -eq "$(jq -s length <out)" ] || fail "$last: not one object a line"
    jq -es "$1" <out >/dev/null || fail "$last: not true of its JSON: $1"
}

eventually() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 500 ] || fail "did not come true: $*"
        sleep 0.02
    done
}

nothing_left() {
    hf ls
    status_is 0
    out_is_empty
}

# One test: a fresh home, a fresh embedded store and no configuration of this machine's user.
run_case() {
    umask 077
    dir=$(mktemp -d)
    # What a failed test leaves running would hold our output, and so the next test, for ever. A
    # subshell may know of no jobs, so $(jobs -p) would not do.
    trap 'jobs -p >"$dir/jobs"; xargs -r kill <"$dir/jobs" 2>/dev/null || :; rm -rf "$dir"' EXIT
    cd "$dir"
    unset HOLDFAST_NAME HOLDFAST_HELD XDG_CONFIG_HOME XDG_STATE_HOME NO_COLOR
    HOME=$dir HOLDFAST_URL=sqlite:$dir/store/locks.db LC_ALL=C.UTF-8
    export HOME HOLDFAST_URL LC_ALL
    mkdir store
    last='the test'
    set -eu
    "$1"
}

run_all() {
    passed=0 failed=0
    for name in $(sed -n 's/^\(test_[a-z0-9_]*\)() {$/\1/p' "$0"); do
        code=0
        report=$(timeout -k 5 60 sh "$0" --case "$name" 2>&1) || code=$?
        case $code in
        0) passed=$((passed + 1)) ;;
        77) printf 'skipped %s: %s\n' "$name" "$report" ;;
        *)
            failed=$((failed + 1))
            printf 'FAILED %s\n%s\n' "$name" "$report"
            ;;
        esac
    done
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

: "${HOLDFAST:?}" "${HOLDFAST_MODULES:?}" "${MAN:?}" "${HEADER:?}" "${COMPLETIONS:?}" "${TREE:?}"
if [ "${1:-}" = --case ]; then
    run_case "$2"
else
    run_all
fi
