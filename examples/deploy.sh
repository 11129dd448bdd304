#!/bin/sh
# One deployment at a time, and none that goes on after its turn is over.
#
#     deploy.sh HOST...
#
# The script starts itself again under `holdfast run`, waiting up to ten minutes for its turn. Before
# each step that cannot be undone it asks the store whether its grant is still the current one. Only
# status 1 is the answer "no": any other means that the question could not be asked, which says
# nothing about whose turn it is.
set -eu

if [ "${HOLDFAST_NAME-}" != deploy/production ]; then
    exec holdfast run --wait 10m --ttl 30s --note "deploys to $*" deploy/production -- "$0" "$@"
fi

for host; do
    status=0
    holdfast check "$HOLDFAST_SEQUENCER" >/dev/null || status=$?
    case $status in
    0) ;;
    1) echo "it is no longer our turn: stopped before $host" >&2; exit 1 ;;
    *) echo "cannot ask whether it is our turn: stopped before $host" >&2; exit "$status" ;;
    esac
    echo "deploying to $host under token $HOLDFAST_TOKEN"
done
