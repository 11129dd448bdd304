# What the tests of `holdfast run` share, besides harness.sh.
#
#   gives STATUS CMD       runs a command that must exit with this status
#   ended_with STATUS PID  waits for a background job, which must end with this status
#   is_dead PID    has_text FILE RE    is_held NAME    is_free    waits    not CMD
#   start_stubborn OPTION...   a run of a command that does not end by itself: all_dead, $wrapper
#   look_when_let_in           takes the same lock; 0 if nobody of that command is alive then
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

# A command that ignores TERM, with a grandchild that does too, one that left the group, and one that
# left it and whose parent has died.
stubborn='
trap "" TERM
echo $$ >leader
sh -c "echo \$\$ >grandchild; exec sleep 60" &
setsid sh -c "echo \$\$ >stray; exec sleep 60" &
setsid sh -c "sleep 60 & echo \$! >orphan"
until test -s grandchild && test -s stray && test -s orphan; do sleep 0.01; done
echo ready >ready
while :; do sleep 0.05; done'

start_stubborn() {
    holdfast run "$@" x -- sh -c "$stubborn" 2>err &
    # shellcheck disable=SC2034 # for the test
    wrapper=$!
    eventually has_text ready ready
}

all_dead() {
    for who in leader grandchild stray orphan; do
        is_dead "$(cat $who)" || return 1
    done
}

# Bids for the lock; the moment it is let in, it looks whether anybody of the former command is alive.
look_when_let_in() {
    holdfast run x -- sh -c '
        for who in leader grandchild stray orphan; do
            kill -0 "$(cat $who)" 2>/dev/null && ! grep -q "^State:.Z" "/proc/$(cat $who)/status" && exit 9
        done
        exit 0'
}
