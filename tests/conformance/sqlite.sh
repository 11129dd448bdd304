#!/bin/sh
# Runs the suite on an embedded store in a fresh directory: sqlite.sh CONFORMANCE [OPTION...]
set -eu
suite=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
"$suite" "$@" "sqlite:$dir/locks.db"
