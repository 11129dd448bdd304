# What the tests of `holdfast run` share, besides harness.sh.
#
#   gives STATUS CMD       runs a command that must exit with this status
#   ended_with STATUS PID  waits for a background job, which must end with this status
#   is_dead PID    has_text FILE RE    is_held NAME    is_free    waits    not CMD
#
# A test waits for what must happen (harness.sh: eventually), never for a time.

PATH=$(dirname "$HOLDFAST"):$PATH
export PATH
unset HOLDFAST_MODE HOLDFAST_TOKEN HOLDFAST_SEQUENCER

gives() {
    wanted=$1
    shift
    got=0
    "$@" || got=$?
    [ "$got" -eq "$wanted" ] || { echo "exit status $got, not $wanted: $*"; return 1; }
}

ended_with() {
    got=0
    wait "$2" || got=$?
    [ "$got" -eq "$1" ] || { echo "the job ended with $got, not $1"; return 1; }
}

not() {
    if "$@"; then
        return 1
    fi
}

# A zombie that nobody has reaped yet runs no more.
is_dead() {
    ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null
}

has_text() {
    [ -s "$1" ] && grep -qe "$2" "$1"
}

# Nobody holds a lock or waits for one.
is_free() {
    [ -z "$("$HOLDFAST" ls --json)" ]
}

is_held() {
    "$HOLDFAST" ls --json | grep -q '"name":"'"$1"'"'
}

waits() {
    "$HOLDFAST" ls --json | grep -q '"waiting"'
}

holder_ticket() {
    "$HOLDFAST" show --json "$1" | tr ',{}' '\n\n\n' | sed -n 's/^"ticket":"\(.*\)"$/\1/p' | head -n 1
}
