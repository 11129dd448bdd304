#!/bin/sh
# Installs a build into a throw-away root and uses it from there as a stranger would.
#
#     check-install.sh BUILD-DIRECTORY      (built with --prefix=/usr)
#
# Prints "ok - NAME" or "not ok - NAME" for each check; the status is 1 if one failed.
set -u
build=$1
here=$(cd "$(dirname "$0")/.." && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
status=0

check() {
    name=$1
    shift
    if output=$("$@" 2>&1); then
        echo "ok - $name"
    else
        printf '%s\nnot ok - %s\n' "$output" "$name"
        status=1
    fi
}

installs() {
    DESTDIR=$root meson install --no-rebuild -C "$build"
}

# Each pattern must match at least one installed file.
everything_is_there() {
    result=0
    for pattern in include/holdfast.h 'lib*/libholdfast.so' 'lib*/pkgconfig/holdfast.pc' \
        bin/holdfast share/man/man1/holdfast.1 share/man/man1/holdfast-run.1 share/man/man3/holdfast.3 \
        share/man/man7/holdfast.7 share/bash-completion/completions/holdfast \
        share/zsh/site-functions/_holdfast; do
        find "$root/usr" -path "$root/usr/$pattern" | grep -q . || { echo "missing: $pattern"; result=1; }
    done
    return "$result"
}

# What the header declares is what the library exports, no more and no less.
exports_match() {
    library=$(find "$root" -name 'libholdfast.so.*' -type f)
    gcc -E -P -x c "$here/include/holdfast.h" | tr '\n' ' ' | tr ';' '\n' | grep -v typedef |
        grep -o '\bhf_[a-z_]*(' | tr -d '(' | sort -u >"$root/declared"
    nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$root/exported"
    diff "$root/declared" "$root/exported"
}

header_compiles_alone() {
    header=$root/usr/include/holdfast.h
    gcc -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c "$header" &&
        clang -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c++ "$header"
}

# By the installed pkg-config file, with nothing from the tree but the source `$1`.
program_runs() {
    libdir=$(dirname "$(find "$root" -name libholdfast.so)")
    export PKG_CONFIG_LIBDIR="$libdir/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
    # shellcheck disable=SC2046 # a list of words
    gcc -Wall -Wextra -Werror "$1" $(pkg-config --cflags --libs holdfast) -o "$root/program" &&
        LD_LIBRARY_PATH=$libdir "$root/program" memory://install
}

# Without any shared library. Modules cannot be loaded then, which the linker warns of.
static_program_runs() {
    libdir=$(dirname "$(find "$root" -name libholdfast.a)")
    export PKG_CONFIG_LIBDIR="$libdir/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
    # shellcheck disable=SC2046 # a list of words
    gcc -static "$1" $(pkg-config --static --cflags --libs holdfast) -o "$root/program" &&
        "$root/program" memory://install && "$root/program" "sqlite:$root/static.db"
}

# The first C program in the README, as it stands there.
readme_example_runs() {
    awk '/^```c$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$here/README.md" >"$root/readme.c"
    program_runs "$root/readme.c"
}

# No run-time path, no build path: it must work wherever it is put.
command_runs() {
    HOLDFAST_URL=sqlite:$root/locks.db "$root/usr/bin/holdfast" run hello -- echo "it is my turn" |
        grep -qx "it is my turn"
}

leaves_no_build_path() {
    ! grep -rlF "$here" "$root/usr"
}

check "meson install works" installs
check "everything is installed" everything_is_there
check "exported symbols are those of the header" exports_match
check "the header compiles alone, as C11 and as C++" header_compiles_alone
check "an example builds by pkg-config and runs" program_runs "$here/examples/mutex.c"
check "a threaded example builds by pkg-config and runs" program_runs "$here/examples/semaphore.c"
check "an example builds by pkg-config --static and runs" static_program_runs "$here/examples/mutex.c"
check "the example of the README builds by pkg-config and runs" readme_example_runs
check "the installed command runs" command_runs
check "no path of the build is left in it" leaves_no_build_path
exit $status
