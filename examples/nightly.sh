#!/bin/sh
# A job that cron starts on every machine at the same minute, and that one of them does.
#
#     0 3 * * *  nightly.sh /usr/local/bin/make-report
#
# -n: whoever comes second does not wait. -E 99: "somebody else does it" has a status of its own, so
# that it cannot be taken for a failure of the job. --max-hold: a stuck job is stopped and lets go.
set -u

holdfast run -n -E 99 --ttl 30s --max-hold 2h --note "nightly report" nightly/report -- "$@"
status=$?

case $status in
0) echo "done here" ;;
99) echo "done elsewhere" ;;
80) echo "the lock was lost and the job was stopped" >&2; exit 80 ;;
*) echo "the job failed with status $status" >&2; exit "$status" ;;
esac
