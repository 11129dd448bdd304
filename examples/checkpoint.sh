#!/bin/sh
# A job that reads a log from where the last run stopped. Where that is stands beside the lock, and only
# its holder can write it: a run that was frozen, lost the lock and wakes up late cannot put it back.
#
#     checkpoint.sh LOG COMMAND...      COMMAND gets the new lines
#
# --value-file puts the value into the file "offset", and keeps what the job leaves there if it ends well.
# HOLDFAST_DOUBT says whether the last run vanished: then some lines may be done already.
set -u

log=$1
shift
work=$(mktemp -d) || exit 71
trap 'rm -rf "$work"' EXIT

cat >"$work/job" <<'END'
#!/bin/sh
log=$1 work=$2
shift 2
from=$(cat "$work/offset")
size=$(wc -c <"$log")
[ "$HOLDFAST_DOUBT" = 0 ] || echo "the last run did not end: lines from ${from:-0} on may come twice" >&2
tail -c "+$((${from:-0} + 1))" "$log" | head -c "$((size - ${from:-0}))" | "$@" || exit
printf %s "$((size))" >"$work/offset"
END
chmod +x "$work/job"

holdfast run -n -E 99 --value-file "$work/offset" "checkpoint/${log##*/}" -- "$work/job" "$log" "$work" "$@"
status=$?
[ $status -ne 99 ] || echo "it is being read already"
exit $status
