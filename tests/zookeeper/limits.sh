#!/bin/sh
# Session limits and the command's way through them: limits.sh HOLDFAST URL, on a server whose longest
# session is 5 s.
set -eu
holdfast=$1
HOLDFAST_URL=$2
export HOLDFAST_URL

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# c3: what the server would cut short is refused, with the figure.
if text=$("$holdfast" run --ttl 30s a -- true 2>&1); then fail "a ttl of 30 s was taken"; fi
case $text in *5000\ ms*maxSessionTimeout*) ;; *) fail "said: $text" ;; esac
# c8: so is a lock-delay that does not fit.
if text=$("$holdfast" run --ttl 2s --lock-delay 4s a -- true 2>&1); then fail "6 s were taken"; fi
case $text in *6000\ ms*) ;; *) fail "said: $text" ;; esac
"$holdfast" run --ttl 2s --lock-delay 3s a -- true || fail "5 s were refused"
# c2: without a user nodes would be the world's, which must be asked for.
open=zookeeper://${HOLDFAST_URL#*@}
status=0
text=$("$holdfast" -u "$open" run a -- true 2>&1) || status=$?
[ "$status" = 64 ] || fail "without a user: $status"
case $text in *acl=world*) ;; *) fail "said: $text" ;; esac
"$holdfast" -u "$open-open?acl=world" run --ttl 2s a -- true || fail "acl=world was refused"
# What ZooKeeper cannot do is said.
if "$holdfast" run --limit 2 -s --ttl 2s a -- true 2>/dev/null; then fail "a limit was taken"; fi
if "$holdfast" lock --ttl 2s a 2>/dev/null; then fail "a lock outlived its process"; fi
# But one that never expires needs no session: it is unlocked by whoever has its ticket.
ticket=$("$holdfast" --json lock --never-expires kept | sed 's/.*"ticket":"\([0-9a-f]*\)".*/\1/') || fail "lock --never-expires"
if "$holdfast" run --ttl 2s --wait 0 kept -- true 2>/dev/null; then fail "it did not stay"; fi
"$holdfast" unlock kept --ticket "$ticket" || fail "unlock by ticket"
"$holdfast" run --ttl 2s --wait 0 kept -- true || fail "it stayed"
if "$holdfast" unlock kept --ticket "$ticket" 2>/dev/null; then fail "it was unlocked twice"; fi
# A never-expiring lock keeps its place and its token in the row. (The child's environment has no password.)
first=$("$holdfast" --json show b | wc -l)
[ "$first" -le 1 ] || fail "b is held"
"$holdfast" run --never-expires b -- "$holdfast" -u "$HOLDFAST_URL" show b 2>/dev/null | grep -q inside || fail "b was not held"
# doctor says what a longer ttl would meet.
"$holdfast" doctor | grep -q 'default ttl of 30000 ms is refused' || fail "doctor is silent"
echo ok
