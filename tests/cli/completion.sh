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
    offers holdfast lo
    out_is lock
    offers holdfast -u memory: sh
    out_is show
    offers holdfast help un
    out_is unlock
    offers holdfast ''
    [ "$(wc -l <out)" -eq 14 ]
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

test_zsh_accepts_it() {
    command -v zsh >/dev/null || skip 'there is no zsh'
    zsh -n "$COMPLETIONS/_holdfast"
    head -n 1 "$COMPLETIONS/_holdfast" | grep -qx '#compdef holdfast'
}

# In a terminal of its own, zsh completes a verb and an option.
test_zsh_completes() {
    command -v zsh >/dev/null || skip 'there is no zsh'
    cat >driver.zsh <<END
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; fpath=('$COMPLETIONS' \$fpath); path=('$(dirname "$HOLDFAST")' \$path)"
zpty -w shell "autoload -U compinit; compinit -u -d '$PWD/dump'; echo rea''dy"
zpty -m -r shell text '*ready*'
zpty -w -n shell \$'holdfast unl\t'
zpty -w shell " --tick"\$'\t'"; echo do''ne"
zpty -r shell text '*done*'
print -r -- "\$text"
zpty -d shell
END
    timeout 20 zsh -f driver.zsh >out 2>err || :
    last='zsh completion'
    out_has 'unlock'
    out_has '--ticket'
}

. "$(dirname "$0")/harness.sh"
