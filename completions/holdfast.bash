# bash completion for holdfast. The verbs and options come from the command's own tables, so this file
# never goes out of date: `holdfast __options [VERB]`.

# The verb among the words before the cursor; for run also where its command begins.
_holdfast_find_verb() {
    local i name=
    verb= command=0
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --) command=$((i + 1)) && return ;;
        -u | --url | --color) [[ $verb ]] || ((i++)) ;;
        -*) ;;
        *) [[ $verb ]] || verb=${COMP_WORDS[i]} ;;
        esac
    done
}

# What may follow the option $1: words in COMPREPLY. False if it takes no argument.
_holdfast_argument() {
    local long short argument choices help
    while IFS=$'\t' read -r long short argument choices help; do
        [[ $1 == "$long" || $1 == "$short" ]] || continue
        [[ $argument != - ]] || return 1
        [[ $argument != FILE ]] || mapfile -t COMPREPLY < <(compgen -f -- "$2")
        [[ $choices == - ]] || mapfile -t COMPREPLY < <(compgen -W "${choices//|/ }" -- "$2")
        return 0
    done < <("${COMP_WORDS[0]}" __options $verb 2>/dev/null)
    return 1
}

_holdfast_options() {
    local long short rest words=
    while IFS=$'\t' read -r long short rest; do
        words+=" $long"
        [[ $short == - ]] || words+=" $short"
    done < <("${COMP_WORDS[0]}" __options "$verb" 2>/dev/null)
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$1")
}

_holdfast_verbs() {
    local name rest words=help
    while IFS=$'\t' read -r name rest; do
        words+=" $name"
    done < <("${COMP_WORDS[0]}" __options 2>/dev/null)
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$1")
}

_holdfast() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb command
    COMPREPLY=()
    _holdfast_find_verb
    if [[ $verb == run ]] && ((command > 0)); then
        if ((COMP_CWORD == command)); then
            mapfile -t COMPREPLY < <(compgen -c -- "$cur")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        fi
    elif [[ $prev == -* && $verb ]] && _holdfast_argument "$prev" "$cur"; then
        :
    elif [[ ! $verb || $verb == help ]]; then
        _holdfast_verbs "$cur"
    elif [[ $cur == -* ]]; then
        _holdfast_options "$cur"
    fi
}

complete -F _holdfast holdfast
