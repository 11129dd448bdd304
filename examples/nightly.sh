#!/bin/sh
# A job that cron starts on every machine at the same minute, and that one of them does.
#
#     0 3 * * *  nightly.sh /usr/local/bin/make-report
#
# --every 1d: whoever comes second finds that it is done, or being done, and leaves with status 0. After a
# run that ended well the lock stays closed for nine tenths of the day, however short the run was and
# whatever the clocks of the machines say. A run that failed does not count: the next machine tries.
# --max-hold: a stuck job is stopped and lets go.
set -u

holdfast run --every 1d --ttl 30s --max-hold 2h --note "nightly report" nightly/report -- "$@"
status=$?

case $status in
0) ;;
80) echo "the lock was lost and the job was stopped" >&2 ;;
*) echo "the job failed with status $status" >&2 ;;
esac
exit $status
