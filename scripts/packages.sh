# shellcheck shell=sh
# What must be installed to build and to test holdfast, and how to get it. Sourced by ./holdfast and
# ./check, which set `me` (the name in messages) and `here` (the top of the tree) first.
#
# A need is a line of a table: a probe that says whether it is met, and the packages that bring it on
# each system. Packages are only installed by apt-get, and only those whose probe fails; elsewhere, and
# with HOLDFAST_INSTALL=no in the environment, the list is printed and the status is 69.

: "${me:?}" "${here:?}"

# probe           Debian, Ubuntu       Fedora                Arch        Alpine
# shellcheck disable=SC2034 # for those who source this
build_needs='
compiler          gcc,libc6-dev        gcc,glibc-devel       gcc         gcc,musl-dev
command:meson     meson                meson                 meson       meson
command:ninja     ninja-build          ninja-build           ninja       samurai
command:pkg-config pkg-config          pkgconf-pkg-config    pkgconf     pkgconf
library:sqlite3   libsqlite3-dev       sqlite-devel          sqlite      sqlite-dev
'

# What the modules of the stores and the server are built with: what needs a library that is not there is left out.
# shellcheck disable=SC2034
store_needs='
library:libmariadb libmariadb-dev      mariadb-connector-c-devel mariadb-libs mariadb-connector-c-dev
library:libnghttp2 libnghttp2-dev      libnghttp2-devel      libnghttp2  nghttp2-dev
library:hiredis   libhiredis-dev       hiredis-devel         hiredis     hiredis-dev
library:openssl   libssl-dev           openssl-devel         openssl     openssl-dev
library:jansson   libjansson-dev       jansson-devel         jansson     jansson-dev
library:libmicrohttpd libmicrohttpd-dev libmicrohttpd-devel  libmicrohttpd libmicrohttpd-dev
library:libpq     libpq-dev            libpq-devel           postgresql-libs libpq-dev
library:odbc      unixodbc-dev         unixODBC-devel        unixodbc    unixodbc-dev
package:libzookeeper-mt-dev libzookeeper-mt-dev - - -
'

# shellcheck disable=SC2034
test_needs='
command:g++       g++                  gcc-c++               gcc         g++
command:python3   python3              python3               python      python3
command:mariadbd  mariadb-server       mariadb-server        mariadb     mariadb
library:libuv     libuv1-dev           libuv-devel           libuv       libuv-dev
library:cmocka    libcmocka-dev        libcmocka-devel       cmocka      cmocka-dev
command:etcd      etcd-server          etcd                  etcd        etcd
command:etcdctl   etcd-client          etcd                  etcd        etcd-ctl
command:curl      curl                 curl                  curl        curl
command:odbcinst  unixodbc             unixODBC              unixodbc    unixodbc
package:odbc-mariadb odbc-mariadb      -                     -           -
command:psql      postgresql           postgresql-server     postgresql  postgresql
package:galera-4  galera-4             -                     -           -
package:python3-tooz python3-tooz,python3-pymysql,python3-psycopg2 - - -
command:pgbouncer pgbouncer            pgbouncer             pgbouncer   pgbouncer
command:redis-server redis-server      redis                 redis       redis
command:openssl   openssl              openssl               openssl     openssl
python:redis      python3-redis        python3-redis         python-redis py3-redis
command:node      nodejs               nodejs                nodejs      nodejs
command:npm       npm                  npm                   npm         npm
browser           chromium             chromium              chromium    chromium
command:promtool  prometheus           golang-github-prometheus prometheus prometheus
command:flock     util-linux           util-linux            util-linux  util-linux-misc
command:clang     clang                clang                 clang       clang
fuzzer            libclang-rt-dev      compiler-rt           compiler-rt compiler-rt
command:abidiff   abigail-tools        libabigail            -           -
command:clang-format clang-format      clang-tools-extra     clang       clang-extra-tools
command:shellcheck shellcheck          ShellCheck            shellcheck  shellcheck
command:jq        jq                   jq                    jq          jq
command:ip        iproute2             iproute               iproute2    iproute2
command:ps        procps               procps-ng             procps-ng   procps
command:mandoc    mandoc               mandoc                mandoc      mandoc
command:zsh       zsh                  zsh                   zsh         zsh
package:zookeeper zookeeper            -                     -           -
package:libcurator-recipes-java libcurator-recipes-java - - -
package:python3-kazoo python3-kazoo    -                     -           -
package:python3-pip python3-pip        -                     -           -
command:mvn       maven                maven                 maven       maven
command:go        golang-go            golang                go          go
package:openjdk-17-jre-headless openjdk-17-jre-headless - -             -
package:python3-cassandra python3-cassandra -            -           -
command:systemd-analyze systemd     systemd               systemd     -
command:javac     default-jdk-headless java-devel            jdk-openjdk openjdk17-jdk
'

# What ./check packages needs besides.
# shellcheck disable=SC2034
package_needs='
command:dpkg-buildpackage dpkg-dev     -                     -           -
command:dh        debhelper            -                     -           -
command:lintian   lintian              -                     -           -
command:debootstrap debootstrap        -                     -           -
command:rpmbuild  rpm                  rpm-build             rpm-tools   rpm
command:rpmlint   rpmlint              rpmlint               -           -
'

say() {
    printf '%s: %s\n' "$me" "$*" >&2
}

die() {
    say "$*"
    exit 69
}

# True if the need that `$1` names is met.
is_met() {
    case $1 in
    compiler) printf '#include <stdio.h>\n' | cc -E - >/dev/null 2>&1 ;;
    browser) command -v chromium >/dev/null 2>&1 || grep -qx 'ID=ubuntu' /etc/os-release ;; # whose package is a snap
    fuzzer) [ -e "$(clang -print-file-name=libclang_rt.fuzzer-"$(uname -m)".a 2>/dev/null)" ] ;;
    command:*) command -v "${1#*:}" >/dev/null 2>&1 ;;
    library:*) pkg-config --exists "${1#*:}" 2>/dev/null ;;
    python:*) python3 -c "import ${1#*:}" 2>/dev/null || /usr/bin/python3 -c "import ${1#*:}" 2>/dev/null ;;
    package:*) [ "$(dpkg-query -W -f='${db:Status-Status}' "${1#*:}" 2>/dev/null)" = installed ] ;;
    *) return 1 ;;
    esac
}

# The packages of column `$1` for those needs of table `$2` that are not met, on one line.
missing_packages() {
    printf '%s\n' "$2" | while read -r probe debian fedora arch alpine; do
        [ -n "$probe" ] || continue
        is_met "$probe" && continue
        case $1 in
        debian) packages=$debian ;;
        fedora) packages=$fedora ;;
        arch) packages=$arch ;;
        *) packages=$alpine ;;
        esac
        [ "$packages" = - ] || printf '%s\n' "$packages" | tr , ' '
    done | tr '\n' ' ' | sed 's/ *$//'
}

# debian, fedora, arch, alpine, macos or other, by what installs packages here.
system_family() {
    if [ "$(uname -s)" = Darwin ]; then
        echo macos
    elif command -v apt-get >/dev/null 2>&1 && command -v dpkg-query >/dev/null 2>&1; then
        echo debian
    elif command -v dnf >/dev/null 2>&1; then
        echo fedora
    elif command -v pacman >/dev/null 2>&1; then
        echo arch
    elif command -v apk >/dev/null 2>&1; then
        echo alpine
    else
        echo other
    fi
}

# Runs apt-get as root; what it says goes to the log.
apt_get() {
    set -- env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -y "$@"
    [ "$(id -u)" -eq 0 ] || set -- sudo "$@"
    "$@" </dev/null >>"$log" 2>&1
}

# Installs the packages of the list `$1`. The package lists may be old or absent: they are fetched
# only if it does not work without.
apt_install() {
    log=$here/build/packages.log
    mkdir -p "$here/build" || die "cannot write to $here"
    : >"$log"
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null 2>&1; then
        die "these packages are needed; as root, run: apt-get install $1"
    fi
    say "installing $1"
    # shellcheck disable=SC2086 # a list of words
    apt_get install --no-install-recommends $1 ||
        { apt_get update && apt_get install --no-install-recommends $1; } ||
        { tail -n 20 "$log" >&2; die "apt-get could not install $1 (log: $log)"; }
}

# The same for the packages of this system; "other" is shown Debian's names.
missing_here() {
    case $family in
    fedora | arch | alpine) missing_packages "$family" "$1" ;;
    *) missing_packages debian "$1" ;;
    esac
}

# Sees to it that every need of table `$1` is met, or says what to install and exits 69.
meet_needs() {
    family=$(system_family)
    missing=$(missing_here "$1")
    [ -n "$missing" ] || return 0
    case $family in
    debian)
        [ "${HOLDFAST_INSTALL:-yes}" != no ] || die "please install: apt-get install $missing"
        apt_install "$missing"
        ;;
    fedora) die "please install: dnf install $missing" ;;
    arch) die "please install: pacman -S --needed $missing" ;;
    alpine) die "please install: apk add $missing" ;;
    macos) die "macOS is not supported: holdfast needs Linux (epoll, timerfd, CLOCK_BOOTTIME)" ;;
    *)
        say "please install, by whatever name your system has for them: $missing"
        die "(Fedora: $(missing_packages fedora "$1"); Arch: $(missing_packages arch "$1"); Alpine: $(missing_packages alpine "$1"))"
        ;;
    esac
    missing=$(missing_here "$1")
    [ -z "$missing" ] || die "still missing after the installation: $missing"
}
