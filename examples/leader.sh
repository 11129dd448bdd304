#!/bin/sh
# Leader election: start this on several machines; one runs the service, the others stand by.
#
#     leader.sh my-service --port 8080
#
# `run` waits in the queue until it is this machine's turn. If the leader dies or is cut off from the
# store, its service is killed before the lease can be given to the next one. The loop stands again
# when the service has failed or the lead was lost; it ends when the service ends well.
set -u

while :; do
    holdfast run --ttl 10s --on-lost kill --note "$(uname -n)" leader/my-service -- "$@"
    status=$?
    case $status in
    0) exit 0 ;;
    64 | 126 | 127) exit "$status" ;; # a mistake that trying again will not mend
    80) echo "lost the lead; standing by again" >&2 ;;
    *) echo "the service ended with status $status; standing by again" >&2 ;;
    esac
    sleep 1
done
