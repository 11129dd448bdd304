# bash completion for holdfast. The verbs and options come from the command's own tables, so this file
# never goes out of date: `holdfast __options [VERB]`. Names, tickets and stores come from the store:
# it is asked for two seconds at most.

# The lines that the command answers with, as far as they begin with $1.
_holdfast_ask() {
    local cur=$1 line
    shift
    while IFS= read -r line; do
        [[ $line != "$cur"* ]] || COMPREPLY+=("$(printf '%q' "$line")")
    done < <(timeout 2 "${COMP_WORDS[0]}" "${store[@]}" "$@" 2>/dev/null)
}

# Schemes end in a colon, at which bash parts words: what it has of the word already is taken off.
_holdfast_urls() {
    [[ $1 == *[:=]* ]] || _holdfast_ask "$1" __schemes
    compopt -o nospace 2>/dev/null
}

# The verb among the words before the cursor; for run also where its command begins.
_holdfast_find_verb() {
    local i
    verb= name= command=0 store=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --) command=$((i + 1)) && return ;;
        -u | --url) _holdfast_take_url $((i + 1)) && i=$url_end ;;
        -*) ! _holdfast_takes_argument "${COMP_WORDS[i]}" || ((i++)) ;;
        *) if [[ ! $verb ]]; then verb=${COMP_WORDS[i]}; elif [[ ! $name ]]; then name=${COMP_WORDS[i]}; fi ;;
        esac
    done
}

# The URL that begins with the word $1: bash has parted it at its colons and equal signs.
_holdfast_take_url() {
    local url=
    for ((url_end = $1; url_end < COMP_CWORD; url_end++)); do
        url+=${COMP_WORDS[url_end]}
        [[ ${COMP_WORDS[url_end]} == [:=] || ${COMP_WORDS[url_end + 1]-} == [:=]* ||
            $url == *[:=] ]] || break
    done
    store=(-u "$url")
}

_holdfast_takes_argument() {
    local long short argument rest
    while IFS=$'\t' read -r long short argument rest; do
        [[ $1 != "$long" && $1 != "$short" ]] || [[ $argument == - ]] || return 0
    done < <("${COMP_WORDS[0]}" __options "${verb:-ls}" 2>/dev/null)
    return 1
}

# What may follow the option $1: words in COMPREPLY. False if it takes no argument.
_holdfast_argument() {
    local long short argument choices help
    while IFS=$'\t' read -r long short argument choices help; do
        [[ $1 == "$long" || $1 == "$short" ]] || continue
        [[ $argument != - ]] || return 1
        case $argument in
        FILE) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
        URL) _holdfast_urls "$2" ;;
        T) [[ ! $name ]] || _holdfast_ask "$2" __tickets "$name" ;;
        esac
        [[ $choices == - ]] || mapfile -t COMPREPLY < <(compgen -W "${choices//|/ }" -- "$2")
        return 0
    done < <("${COMP_WORDS[0]}" __options "${verb:-ls}" 2>/dev/null)
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
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb name command url_end
    local -a store
    COMPREPLY=()
    _holdfast_find_verb
    if [[ $verb == run || $verb == elect ]] && ((command > 0)); then
        if ((COMP_CWORD == command)); then
            mapfile -t COMPREPLY < <(compgen -c -- "$cur")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        fi
    elif [[ $prev == -* ]] && _holdfast_argument "$prev" "$cur"; then
        :
    elif [[ ! $verb || $verb == help ]]; then
        _holdfast_verbs "$cur"
    elif [[ $cur == -* ]]; then
        _holdfast_options "$cur"
    elif [[ ! $name ]]; then
        case $verb in
        run | elect | lock | unlock | renew | show | value | watch | log | break) _holdfast_ask "$cur" __names ;;
        stores) mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" __schemes | tr -d :)" -- "$cur") ;;
        doctor) _holdfast_urls "$cur" ;;
        esac
    fi
}

complete -F _holdfast holdfast
