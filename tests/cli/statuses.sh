# The exit statuses that every verb has in common: 64, 69, 71 and 75.

# Operands with which each verb would work.
words() {
    case $1 in
    run) echo run x true ;;
    lock) echo lock -n free --ttl 5s ;;
    renew | unlock | break) echo "$1" held --ticket "$(cat ticket)" ;;
    show) echo show held ;;
    check) echo check "$(cat sequencer)" ;;
    bench) echo bench --count 2 ;;
    *) echo "$1" ;;
    esac
}

# One lock that never expires, with its ticket and its sequencer.
hold_one() {
    hf lock --json held --never-expires
    status_is 0
    jq -r .ticket out >ticket
    jq -r .sequencer out >sequencer
}

# each STATUS SENTENCE OPTION VERB...: with this option of fault+, each verb is refused so.
each() {
    each_status=$1 each_text=$2 fault=$3
    shift 3
    for verb in "$@"; do
        # shellcheck disable=SC2046
        hf -u "fault+$HOLDFAST_URL?$fault&op_timeout=200ms" $(words "$verb")
        refused "$each_status" "$each_text"
    done
}

test_a_store_that_fails_is_69() {
    hold_one
    each 69 'made to fail' 'fail=*:*' run lock renew unlock ls show break check setup gc bench
    hf show -q held
    status_is 0
}

test_an_unknown_outcome_is_75() {
    hold_one
    each 75 'the outcome is not known' 'hang=*:*' run lock renew unlock ls show break check setup gc bench
    hf show -q held
    status_is 0
}

test_a_store_that_is_not_there_is_69() {
    hold_one
    for verb in run lock renew unlock ls show break check setup gc doctor bench; do
        # shellcheck disable=SC2046
        hf -u gopher://x $(words "$verb")
        refused 69 "no store 'gopher:'"
    done
}

test_output_that_cannot_be_written_is_71() {
    hold_one
    for verb in lock renew ls show check setup gc doctor bench stores; do
        status=0 last="holdfast $verb >/dev/full"
        # shellcheck disable=SC2046
        "$HOLDFAST" $(words "$verb") >/dev/full 2>err </dev/null || status=$?
        : >out
        refused 71 'cannot write the output'
    done
}

. "$(dirname "$0")/harness.sh"
