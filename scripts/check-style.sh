#!/bin/sh
# Formatting and scripts. Prints "ok - NAME" or "not ok - NAME" for each check; the status is 1 if
# one failed.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0

# Runs the rest of the arguments as the check named `$1`; no output and success is well.
check() {
    name=$1
    shift
    if output=$("$@" 2>&1) && [ -z "$output" ]; then
        echo "ok - $name"
    else
        printf '%s\nnot ok - %s\n' "$output" "$name"
        status=1
    fi
}

# The files of the tree with an ending, also where there is no git.
files() {
    find . \( -name .git -o -path './build*' \) -prune -o -type f -name "$1" -print
}

c_files_are_formatted() {
    { files '*.c'; files '*.h'; } | xargs clang-format --dry-run --Werror
}

# Those that are sourced have no first line to say which shell they are for.
scripts_are_clean() {
    {
        files '*.sh'
        find . \( -name .git -o -path './build*' \) -prune -o -type f -perm -u+x -print |
            while read -r file; do
                head -n 1 "$file" | grep -q '^#!.*[/ ]\(ba\)\{0,1\}sh' && echo "$file"
            done
    } | sort -u | while read -r file; do
        case $(head -n 1 "$file") in
        '#!'*) shellcheck -x -S warning "$file" ;;
        *) shellcheck -x -S warning -s sh "$file" ;;
        esac
    done
}

examples_are_short() {
    wc -l examples/*.c examples/*.sh | awk '$2 != "total" && $2 !~ /test.sh$/ && $1 >= 60'
}

no_loose_ends() {
    ! grep -rnE '\b(TODO|FIXME|XXX)\b' include src cli serve
}

check "C files are formatted" c_files_are_formatted
check "scripts are clean" scripts_are_clean
check "examples are below 60 lines" examples_are_short
check "no loose ends" no_loose_ends
exit $status
