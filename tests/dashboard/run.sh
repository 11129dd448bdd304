#!/bin/sh
# run.sh OUTPUT [CASE...]: the tests of the dashboard, in a headless Chromium. What they need of npm is fetched once, into the
# directory OUTPUT, where the screenshots go too. Status 77: this machine cannot run them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?run.sh: name a directory for what the tests leave}
shift
skip() {
    echo "skipped: the dashboard in a browser: $*"
    exit 77
}
command -v node >/dev/null || skip "there is no Node.js (nodejs)"
command -v npm >/dev/null || skip "there is no npm"
for name in chromium chromium-browser google-chrome; do
    [ -n "${CHROMIUM-}" ] || CHROMIUM=$(command -v "$name" || :)
done
[ -n "$CHROMIUM" ] || skip "there is no Chromium (chromium)"
export CHROMIUM

mkdir -p "$out"
out=$(cd "$out" && pwd)
rm -f "$out"/*.mjs
cp "$here"/*.mjs "$here/package.json" "$out/" # modules are looked for beside the program
cd "$out"
if ! cmp -s package.json node_modules/.of-package.json; then
    npm install --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error >npm.log 2>&1 ||
        skip "npm could not fetch playwright-core and axe-core: $(tail -n 1 npm.log)"
    cp package.json node_modules/.of-package.json
fi
exec node "${DASHBOARD_PROGRAM:-run.mjs}" "$@"
