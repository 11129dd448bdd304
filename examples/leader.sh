#!/bin/sh
# Leader election: start this on several machines; one runs the service, the others stand by.
#
#     leader.sh my-service --port 8080
#
# `run` waits in the queue until it is this machine's turn. If the leader dies or is cut off from the
# store, its service is killed before the lease can be given to the next one: the service itself and
# every process it has started. The loop stands again when the service has failed or the lead was
# lost; it ends when the service ends well, or when it is told to (TERM, INT, HUP): then the service
# is sent TERM, and the lock is given back when it has ended.
set -u

run='' asked=''
trap 'asked=yes; [ -z "$run" ] || kill "$run"' TERM INT HUP

while [ -z "$asked" ]; do
    holdfast run --ttl 10s --on-lost kill --note "$(uname -n)" leader/my-service -- "$@" &
    run=$!
    wait "$run"
    status=$?
    # A signal ends that `wait` early; this one waits for the service.
    if [ -n "$asked" ] && [ "$status" -gt 128 ]; then
        wait "$run"
        status=$?
    fi
    run=''
    case $status in
    0) exit 0 ;;
    64 | 126 | 127) exit "$status" ;; # a mistake that trying again will not mend
    80) echo "lost the lead; standing by again" >&2 ;;
    *) [ -n "$asked" ] || echo "the service ended with status $status; standing by again" >&2 ;;
    esac
    [ -n "$asked" ] || sleep 1
done
exit "$status"
