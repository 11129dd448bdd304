# The command line itself: verbs, options, values, help.

test_no_verb_is_a_usage_error() {
    hf
    refused 64 "a verb is missing.*see 'holdfast --help'"
}

test_unknown_verb_is_refused_with_the_nearest() {
    hf lok x
    refused 64 "no verb 'lok'; did you mean 'lock'"
    hf shwo x
    refused 64 "did you mean 'show'"
    hf frobnicate
    refused 64 "no verb 'frobnicate'; see"
}

test_help_names_every_verb() {
    hf --help
    status_is 0
    for verb in run elect lock unlock renew ls show value break check setup gc doctor stores bench; do
        out_has "^  $verb "
        hf help "$verb"
        status_is 0
        out_has "^usage: holdfast $verb "
        cp out by_help
        hf "$verb" --help
        status_is 0
        cmp out by_help
        err_is_empty
        hf --help
    done
    hf help run lock
    refused 64 'too many operands'
    hf help frob
    refused 64 "no verb 'frob'"
}

test_version_before_and_after_the_verb() {
    hf --version
    status_is 0
    out_has '^holdfast [0-9]+\.[0-9]+\.[0-9]+$'
    hf ls -V
    out_has '^holdfast [0-9]'
}

test_unknown_options_are_refused() {
    for verb in lock unlock renew ls show value break check setup gc doctor stores bench; do
        hf "$verb" --frobnicate
        refused 64 "no option '--frobnicate'; see 'holdfast $verb --help'"
        hf "$verb" -Z
        refused 64 "no option '-Z'"
    done
    hf lock --tll 5s x
    refused 64 "did you mean '--ttl'"
    absent store/locks.db
}

test_operands_are_counted() {
    for verb in lock unlock renew show value break check; do
        hf "$verb"
        refused 64 "'$verb' needs .*see 'holdfast $verb --help'"
        hf "$verb" a b
        refused 64 'too many operands'
    done
    for verb in ls setup gc bench; do
        hf "$verb" a
        refused 64 'too many operands'
    done
    for verb in stores doctor; do
        hf "$verb" a b
        refused 64 'too many operands'
    done
    absent store/locks.db
}

test_missing_and_unwanted_values_are_refused() {
    hf lock x --ttl
    refused 64 "'--ttl' needs a value: --ttl DUR"
    hf lock x -w
    refused 64 "'--wait' needs a value"
    hf ls --json=yes
    refused 64 "'--json' takes no value"
}

test_wrong_durations_are_refused() {
    for bad in '' 5q -1 1.2.3 ' 5' 5s5 1e3 0x10 99999999d; do
        hf lock x --ttl "$bad"
        refused 64 "'--ttl' takes a duration"
    done
    hf lock x --ttl 50ms
    refused 64 'from 100ms to 7d'
    hf lock x --ttl 0
    refused 64 'from 100ms to 7d'
    hf lock x --ttl 8d
    refused 64 'from 100ms to 7d'
    hf lock x --ttl 5s --lock-delay 2h
    refused 64 "'--lock-delay' takes a duration from .* to 1h"
    hf run --max-hold 0 x true
    refused 64 "'--max-hold' takes a duration from 1ms to 365d"
    hf ls --older-than soon
    refused 64 "'--older-than' takes a duration"
    hf gc --retain never
    refused 64 "'--retain' takes a duration"
    absent store/locks.db
}

test_wrong_numbers_are_refused() {
    for bad in 0 -1 4294967296 3x '' 99999999999999999999; do
        hf lock x --ttl 5s --limit "$bad"
        refused 64 "'--limit' takes a number from 1 to 4294967295, not '$bad'"
    done
    hf lock x --ttl 5s -E 256
    refused 64 'from 0 to 255'
    hf bench --threads 0
    refused 64 'from 1 to 256'
}

test_choices_are_checked() {
    hf ls --color sometimes
    refused 64 "'--color' takes one of auto\|always\|never, not 'sometimes'"
}

test_short_options_cluster_and_values_join() {
    hf lock -sqw5 c --ttl=5s
    status_is 0
    hf lock -sqw0 c --ttl 5s
    status_is 0
    out_has '^[0-9a-f]{32}$'
}

test_double_dash_ends_the_options() {
    hf lock --ttl 5s -- --json
    status_is 0
    hf show --json -- --json
    status_is 0
    json '.[0].name == "--json"'
}

test_global_options_stand_on_either_side() {
    hf --json show x
    status_is 1
    json '.[0].free'
    hf show x --json
    json '.[0].free'
    hf -q show x
    status_is 1
    out_is_empty
}

test_control_characters_in_arguments_are_escaped() {
    hf "$(printf 'lo\033[31mck')"
    refused 64 "no verb 'lo%1B\[31mck'"
}

test_output_that_cannot_be_written_is_told() {
    status=0
    "$HOLDFAST" --help >/dev/full 2>err || status=$?
    last='holdfast --help >/dev/full' : >out
    refused 71 'cannot write the output'
}

test_setuid_is_refused() {
    [ "$(id -u)" -eq 0 ] || skip 'only root can make a setuid program of another user'
    if grep -q __asan_init "$HOLDFAST"; then
        skip 'the leak sanitizer cannot look into a setuid program'
    fi
    cp "$HOLDFAST" other
    chown 65534 other
    chmod 4755 other
    chmod 711 .
    HOLDFAST=$PWD/other
    hf ls
    [ "$status" -ne 0 ] || skip 'this file system has no setuid programs'
    refused 64 'must not run setuid'
}

. "$(dirname "$0")/harness.sh"
