# The man pages agree with the command and with the header.

verbs() {
    "$HOLDFAST" __options | cut -f1
}

# "--shared -s" and "--ttl DUR" for each option, from the table and from a page's list.
options_of_command() {
    "$HOLDFAST" __options "$1" | awk -F'\t' '{
        line = $1; if ($2 != "-") line = line " " $2; if ($3 != "-") line = line " " $3; print line }' |
        sort
}

options_of_page() {
    awk '/^\.Sh /{ on = ($2 == "OPTIONS") } on && /^\.It Fl / {
        short = ""; long = ""; argument = ""
        for (i = 2; i <= NF; i++) {
            if ($i == "Fl" && $(i + 1) ~ /^-/) long = "-" $(i + 1)
            else if ($i == "Fl") short = " -" $(i + 1)
            if ($i == "Ar") argument = " " $(i + 1)
        }
        print long short argument }' "$1" | sort
}

test_every_verb_has_a_page_and_every_page_a_verb() {
    verbs | sort >by_command
    ls "$MAN" | sed -n 's/^holdfast-\(.*\)\.1$/\1/p' | sort >by_page
    diff by_command by_page
    [ "$(wc -l <by_command)" -eq 19 ]
    for verb in $(verbs); do
        grep -q "^\.It Xr holdfast-$verb 1" "$MAN/holdfast.1"
    done
}

test_the_option_lists_agree() {
    options_of_page "$MAN/holdfast.1" >global
    [ -s global ]
    for verb in $(verbs); do
        options_of_page "$MAN/holdfast-$verb.1" | cat - global | sort >by_page
        options_of_command "$verb" >by_command
        diff by_command by_page
    done
}

test_help_lists_the_same_options() {
    for verb in $(verbs); do
        "$HOLDFAST" "$verb" --help >help
        [ -s help ]
        sed -n 's/^ *\(-., \)\{0,1\}\(--[a-z-]*\).*/\2/p' help | sort >by_help
        "$HOLDFAST" __options "$verb" | cut -f1 | sort >by_table
        diff by_table by_help
    done
}

test_pages_are_clean() {
    command -v mandoc >/dev/null || skip 'there is no mandoc'
    # Whether a page that is referred to exists is checked below: mandoc looks at installed ones only.
    mandoc -T lint "$MAN"/*.[137] 2>/dev/null | grep -v 'referenced manual not found' >lint || :
    [ ! -s lint ] || fail "$(cat lint)"
}

# As man-db shows them on a terminal of the usual width: no line is cut, and nothing is complained of.
test_pages_fit_into_80_columns() {
    command -v man >/dev/null && man --version 2>/dev/null | grep -q '^man 2' || skip 'there is no man-db'
    for page in "$MAN"/*.[137]; do
        MANWIDTH=80 man --warnings -l "$page" 2>warnings | col -bx >text || fail "$(cat warnings)"
        [ -s text ] || skip 'man-db shows nothing here'
        [ ! -s warnings ] || fail "$page: $(cat warnings)"
        awk 'length($0) > 80 { print FILENAME ": " $0; bad = 1 } END { exit bad }' text || fail "$page is too wide"
    done
}

# A quote macro quotes the rest of its line: two on one line nest.
test_quotes_do_not_nest() {
    for page in "$MAN"/*.[137]; do
        lacks "$page" '^\..*(Qq|Ql|Dq) .* (Qq|Ql|Dq) '
    done
}

test_pages_refer_to_pages_that_exist() {
    grep -hE '^\.(It )?Xr holdfast' "$MAN"/*.[137] | sed 's/^\.It /./' | while read -r _ name section _; do
        [ -f "$MAN/$name.$section" ] || fail "no page $name($section)"
    done
}

test_pages_are_installed() {
    (cd "$MAN" && printf '%s\n' ./*.[137]) | sed 's|^\./||' | sort >there
    [ -s there ]
    sed -n "s/^ *'\(.*\)',$/\1/p" "$MAN/meson.build" | sort >installed
    diff there installed
}

test_every_function_is_in_the_manual() {
    # The preprocessor takes the comments away.
    "${CC:-cc}" -E -P "$HEADER" | grep -oE '\bhf_[a-z_]+ *\(' | tr -d ' (' | sort -u >declared
    for function in $(grep -v callback declared); do
        grep -q "^\.Fn $function " "$MAN/holdfast.3" || fail "$function is missing"
    done
    [ "$(wc -l <declared)" -gt 30 ]
}

test_the_example_compiles() {
    sed -n '/^\.Sh EXAMPLES/,/^\.Ed/p' "$MAN/holdfast.3" | sed '/^\./d; s/\\e/\\/g' >example.c
    grep -q hf_acquire example.c
    "${CC:-cc}" -Wall -Wextra -Werror -fsyntax-only -I "$(dirname "$HEADER")" example.c
}

test_every_error_and_capability_is_in_the_manual() {
    grep -oE 'X\(HF_[A-Z_]+' "$HEADER" | cut -c3- | sort -u >names
    for name in $(cat names); do
        grep -qE "^\.(It )?(Er|Dv) ([^ ].* )?$name( |$)" "$MAN/holdfast.3" || fail "$name is missing"
    done
    [ "$(wc -l <names)" -gt 30 ]
}

test_every_clause_is_in_the_manual() {
    for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 18 19; do
        grep -q "^\.It Sy C$n " "$MAN/holdfast.7"
    done
}

. "$(dirname "$0")/harness.sh"
