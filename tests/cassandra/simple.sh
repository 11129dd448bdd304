#!/bin/sh
# simple.sh HOLDFAST CONFORMANCE URL: layout=simple by the conformance suite, and beside a program that follows
# the published recipe in the same table (recipe.py), and what docs/RECIPES.md says of it. One line a rule, "ok" or "FAIL". Of the suite's own
# lines those of its table are left out: the table in the documents is about the store as it is by default.
holdfast=$1 conformance=$2 url="$3?layout=simple"
here=$(cd -P -- "$(dirname -- "$0")" && pwd) || exit 69
failed=0

check() {
    rule=$1
    shift
    if "$@"; then
        echo "ok    $rule"
    else
        echo "FAIL  $rule: $*"
        failed=1
    fi
}

not() {
    ! "$@"
}

recipe() {
    /usr/bin/python3 -W ignore "$here/recipe.py" "$@"
}

if /usr/bin/python3 -c 'import cassandra' 2>/dev/null; then
    check "the recipe takes and gives back" recipe take shared stranger
    check "what it holds is busy for us" sh -c "\"$holdfast\" run -n -u '$url' shared -- true; [ \$? -eq 1 ]"
    check "and shown as held" sh -c "\"$holdfast\" ls -u '$url' | grep -q '^shared '"
    check "it releases" recipe drop shared stranger
    check "then it is ours" "$holdfast" run -n -u "$url" shared -- true
    check "what we hold is busy for it" "$holdfast" run -n -u "$url" shared -- /usr/bin/python3 -W ignore "$here/recipe.py" refused shared stranger
    check "and free after that" recipe take shared stranger
    check "it does not release what it has not" not recipe drop shared nobody
    check "it releases what it has" recipe drop shared stranger
    # shellcheck disable=SC2016 # for the inner shell
    "$holdfast" run -u "$url" --ttl 1s gone -- sh -c 'kill -9 $PPID' 2>/dev/null
    check "our lease ends although we died" recipe await gone stranger
else
    echo "skip  the recipe itself: python3-cassandra is not installed"
fi
check "the recipes are as the document shows them" "$here/../recipes/recipes.py" cassandra "$holdfast" "$here/../../docs/RECIPES.md"
"$conformance" --crowd 20 "$url" >"$HOLDFAST_TEST_CASSANDRA_DIR/suite" 2>&1 || failed=1
grep -v '^|' "$HOLDFAST_TEST_CASSANDRA_DIR/suite"
exit "$failed"
