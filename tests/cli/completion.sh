# Completions for bash and zsh.

# What bash offers for these words; the last is the one being written.
offers() {
    PATH=$(dirname "$HOLDFAST"):$PATH bash -c '
        source "$1/holdfast.bash"; shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _holdfast
        printf "%s\n" "${COMPREPLY[@]}"' bash "$COMPLETIONS" "$@" >out 2>err
    last="completion of $*"
    err_is_empty
}

test_bash_loads_it_quietly() {
    bash -n "$COMPLETIONS/holdfast.bash"
    bash -c 'source "$1" && complete -p holdfast' bash "$COMPLETIONS/holdfast.bash" >out 2>err
    out_has '_holdfast holdfast$'
    err_is_empty
}

test_bash_completes_verbs() {
    offers holdfast loc
    out_is lock
    offers holdfast -u memory: sh
    out_is show
    offers holdfast help un
    out_is unlock
    offers holdfast ''
    [ "$(wc -l <out)" -eq 20 ]
}

test_bash_completes_options_of_the_verb() {
    offers holdfast lock --never
    out_is --never-expires
    offers holdfast ls --o
    out_is --older-than
    offers holdfast lock name --lim
    out_is --limit
    offers holdfast --json ls --pre
    out_is --prefix
}

test_bash_completes_choices_and_no_options_for_values() {
    offers holdfast ls --color al
    out_is always
    offers holdfast lock --ttl -
    out_is ''
    touch my-ticket
    offers holdfast unlock name --ticket-file my-
    out_is my-ticket
}

test_bash_completes_the_command_of_run() {
    offers holdfast run name -- holdf
    out_has '^holdfast$'
    touch some-file
    offers holdfast run name -- cat some-
    out_is some-file
}

test_bash_completes_names_tickets_and_stores() {
    hf lock -q job/1 --ttl 1m
    ticket=$(cat out)
    hf lock -q job/2 --ttl 1m
    offers holdfast show job
    [ "$(cat out)" = "$(printf 'job/1\njob/2')" ] || fail 'no names'
    offers holdfast run --ttl 5s job/2
    out_is job/2
    offers holdfast break job/1 --ticket ''
    out_is "$ticket"
    offers holdfast -u sqli
    out_is sqlite:
    offers holdfast stores sqli
    out_is sqlite
    unset HOLDFAST_URL
    offers holdfast -u sqlite : "$PWD/store/locks.db" show job/1
    out_is job/1
}

test_zsh_accepts_it() {
    command -v zsh >/dev/null || skip 'there is no zsh'
    zsh -n "$COMPLETIONS/_holdfast"
    head -n 1 "$COMPLETIONS/_holdfast" | grep -qx '#compdef holdfast'
}

# zsh_completes WORDS: what a zsh in a terminal of its own makes of the words and a tab.
zsh_completes() {
    cat >driver.zsh <<END
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; fpath=('$COMPLETIONS' \$fpath); path=('$(dirname "$HOLDFAST")' \$path)"
zpty -w shell "autoload -U compinit; compinit -u -d '$PWD/dump'; LISTMAX=1000; echo rea''dy"
zpty -m -r shell text '*ready*'
zpty -w -n shell \$'$1\t'
zpty -w shell "; echo do''ne"
zpty -r shell text '*done*'
print -r -- "\$text"
zpty -d shell
END
    timeout 20 zsh -f driver.zsh 2>err | sed 's/\x1b\[[0-9;?]*[A-Za-z]//g' | tr -d '\a\b\r' >out || :
    last="zsh completion of $1"
    lacks out 'bad math|not found|parse error'
}

test_zsh_completes_verbs_and_options() {
    command -v zsh >/dev/null || skip 'there is no zsh'
    zsh_completes 'holdfast unl'
    out_has 'unlock'
    zsh_completes 'holdfast unlock x --ticket-f'
    out_has '--ticket-file'
    for verb in $("$HOLDFAST" __options | cut -f1); do
        zsh_completes "holdfast $verb --js"
        out_has '--json'
    done
}

test_zsh_completes_names_tickets_and_stores() {
    command -v zsh >/dev/null || skip 'there is no zsh'
    hf lock -q first-job --ttl 1m
    ticket=$(cat out)
    zsh_completes 'holdfast show fir'
    out_has 'first-job'
    zsh_completes 'holdfast break first-job --ticket '
    out_has "$ticket"
    zsh_completes 'holdfast run --ttl 5s fir'
    out_has 'first-job'
    zsh_completes 'holdfast stores sql'
    out_has 'sqlite'
    zsh_completes 'holdfast -u sql'
    out_has 'sqlite.?:'
}

. "$(dirname "$0")/harness.sh"
