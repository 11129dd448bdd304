# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # for those who source this; fleet_dir is of fleet.sh
# Rules checked by a script, one line each: "ok" or "FAIL". Sourced after fleet.sh. HOLDFAST is the command.
: "${fleet_dir:?}"
failed=0

check() {
    rule=$1
    shift
    if "$@" >"$fleet_dir/out" 2>&1; then
        echo "ok    $rule"
    else
        echo "FAIL  $rule: $*"
        cat "$fleet_dir/out"
        failed=1
    fi
}

# says TEXT COMMAND...: fails, and says the text.
says() {
    text=$1
    shift
    "$@" >"$fleet_dir/said" 2>&1 && return 1
    cat "$fleet_dir/said"
    grep -q -e "$text" "$fleet_dir/said"
}

# shows TEXT COMMAND...: goes well, and says the text.
shows() {
    text=$1
    shift
    "$@" >"$fleet_dir/said" 2>&1 || return 1
    grep -q -e "$text" "$fleet_dir/said"
}

hf() {
    "$HOLDFAST" "$@"
}

# check_crowd OPTION...: 50 clients (crowd_size), one lock: each adds one to a number in a file, without any other
# protection.
check_crowd() {
    echo 0 >"$fleet_dir/count"
    crowd=
    for _ in $(seq "${crowd_size:-50}"); do
        # shellcheck disable=SC2016
        hf run "$@" -w 60s crowd -- sh -c 'n=$(cat "$1"); echo $((n + 1)) >"$1"' sh "$fleet_dir/count" 2>>"$fleet_dir/crowd" &
        crowd="$crowd $!"
    done
    for pid in $crowd; do
        wait "$pid"
    done
    check "c1 ${crowd_size:-50} clients on one lock" test "$(cat "$fleet_dir/count")" = "${crowd_size:-50}"
    cat "$fleet_dir/crowd"
}
