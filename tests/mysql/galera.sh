#!/bin/sh
# Two nodes of a Galera cluster (tests/fleet/with-galera): clients of both take the same lock in turns. A
# conflict shows at COMMIT; it is "not granted", and tried again.
# HOLDFAST is the command under test.
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-galera.XXXXXX") || exit 69
trap 'rm -rf "$dir"' EXIT
status=0

# take_turns NODE: whoever is inside makes a directory, which fails if somebody else is there.
take_turns() {
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
        HOLDFAST_URL=$2 "$HOLDFAST" run galera -- sh -c \
            "mkdir '$dir/inside' || echo 'node $1, turn $i: somebody else is inside' >>'$dir/errors'
             echo \$HOLDFAST_TOKEN >>'$dir/tokens'; rmdir '$dir/inside'" || echo "node $1, turn $i: $?" >>"$dir/errors"
    done
}

take_turns one "$1" &
one=$!
take_turns two "$2" &
two=$!
take_turns one-too "$1"
wait "$one" "$two"
if [ -s "$dir/errors" ]; then
    cat "$dir/errors"
    echo "not ok - two nodes exclude each other"
    status=1
else
    echo "ok - two nodes exclude each other"
fi
if [ "$(wc -l <"$dir/tokens")" -eq 45 ] && sort -n -c -u "$dir/tokens"; then
    echo "ok - tokens rise across nodes"
else
    echo "not ok - tokens rise across nodes"
    status=1
fi
if HOLDFAST_URL="$1?hold=session" "$HOLDFAST" run x -- true 2>"$dir/refusal" || ! grep -q Galera "$dir/refusal"; then
    echo "not ok - hold=session is refused"
    cat "$dir/refusal"
    status=1
else
    echo "ok - hold=session is refused"
fi
exit "$status"
