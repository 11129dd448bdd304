# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # for those who source this; fleet_dir is of fleet.sh
# A client that holds locks while servers are changed under it: holder.c, which HOLDER names. Sourced after rules.sh.
: "${fleet_dir:?}" "${HOLDER:?}"

# steps_begin URL: starts it.
steps_begin() {
    mkfifo "$fleet_dir/steps" "$fleet_dir/answers" || exit 69
    "$HOLDER" "$1" <"$fleet_dir/steps" >"$fleet_dir/answers" &
    holder_pid=$!
    fleet_pids="$fleet_pids $holder_pid"
    exec 3>"$fleet_dir/steps" 4<"$fleet_dir/answers"
}

# check_step WHAT NAME: one step; sets token.
check_step() {
    answer='' token=''
    echo "$1 $2" >&3
    read -r answer token <&4
    check "$1 $2: $answer $token" test "$answer" = ok
}

# steps_end: closes the client.
steps_end() {
    exec 3>&- 4<&-
    check "the holder ends" wait "$holder_pid"
}
