# ./holdfast: what it installs and says before it builds. In a tree of its own, in which nothing is
# installed and the tools are stand-ins that note what they were asked for.

# make_tool NAME SHELL-TEXT
make_tool() {
    printf '#!/bin/sh\n%s\n' "$2" >"tools/$1"
    chmod +x "tools/$1"
}

# A tree and a system with these tools besides the usual ones, which do nothing but note their arguments.
make_system() {
    mkdir -p tree/scripts tools
    cp "$TREE/holdfast" tree/
    cp "$TREE/scripts/packages.sh" tree/scripts/
    for tool in sh cat mkdir touch mv rm tail tr sed chmod uname flock env; do
        ln -s "$(command -v $tool)" tools/
    done
    make_tool cc 'exit 0'
    make_tool meson 'mkdir -p tree/build/cli; touch tree/build/build.ninja'
    make_tool ninja 'printf "#!/bin/sh\necho ran \"\$@\"\n" >tree/build/cli/holdfast; chmod +x tree/build/cli/holdfast'
    make_tool pkg-config 'test "$2" = sqlite3 || test -e "has-$2"'
    make_tool id 'echo 0'
    for tool in "$@"; do
        make_tool "$tool" "echo \"\$*\" >>asked"
    done
}

start() {
    status=0
    PATH=$PWD/tools tree/holdfast "$@" >out 2>err </dev/null || status=$?
    last="./holdfast $*"
}

installs_all='for l in libmariadb libnghttp2 hiredis openssl libpq odbc jansson libmicrohttpd; do touch "has-$l"; done; touch has-zookeeper'

test_the_first_use_installs_what_the_stores_need() {
    make_system
    make_tool apt-get "echo \"\$*\" >>asked; $installs_all"
    make_tool dpkg-query 'test -e has-zookeeper && echo installed'
    start run x
    status_is 0
    out_is 'ran run x'
    grep -q 'install .*libhiredis-dev.*libzookeeper-mt-dev' asked
    lacks err 'without'
    rm asked
    start run x
    status_is 0
    absent asked
    err_is_empty
}

test_an_old_build_that_cannot_be_renewed_is_told() {
    unshare -U true 2>/dev/null || skip 'somebody without rights needs a user namespace'
    make_system
    eval "$installs_all"
    start run x
    chmod 555 tree/build
    for newer in no yes; do
        status=0 last='./holdfast of somebody else'
        PATH=$PWD/tools "$(command -v unshare)" -U tree/holdfast run x >out 2>err || status=$?
        status_is 0
        out_is 'ran run x'
        [ "$newer" = yes ] || err_is_empty
        touch -d '1 hour' tree/meson.build
    done
    err_has '^holdfast: running an old build: the sources have changed, and .*/build cannot be written$'
    chmod 755 tree/build
}

test_without_the_right_to_install_it_says_what_is_left_out() {
    make_system apt-get
    make_tool dpkg-query 'exit 1'
    make_tool id 'echo 1000'
    start run x
    status_is 0
    out_is 'ran run x'
    absent asked
    err_has 'as root, run: apt-get install .*libhiredis-dev'
    err_has 'building without the stores that need these; .* install them and remove .*/build'
}

test_who_says_no_gets_no_packages() {
    make_system apt-get
    make_tool dpkg-query 'exit 1'
    export HOLDFAST_INSTALL=no
    start run x
    status_is 0
    out_is 'ran run x'
    absent asked
    err_has '^holdfast: please install: apt-get install .*libhiredis-dev'
    err_has 'building without the stores that need these'
    rm -r tree/build tools/meson
    start run x
    refused 69 'please install: apt-get install meson$'
    absent asked
}

test_an_installation_that_fails_costs_the_stores_only() {
    make_system
    make_tool dpkg-query 'exit 1'
    make_tool apt-get 'echo "no network"; exit 100'
    start run x
    status_is 0
    out_is 'ran run x'
    err_has 'no network'
    err_has 'building without'
}

test_other_systems_are_told_the_names_of_their_packages() {
    make_system dnf
    start run x
    status_is 0
    err_has 'please install: dnf install .*hiredis-devel'
    lacks err zookeeper
}

# What has no package on a system cannot be asked for there, and must not be waited for.
test_a_system_that_has_all_it_can_have_is_content() {
    make_system dnf
    eval "$installs_all"
    start run x
    status_is 0
    lacks err 'install'
}

test_without_a_compiler_nothing_is_built() {
    make_system dnf
    make_tool cc 'exit 1'
    start run x
    refused 69 'please install: dnf install gcc glibc-devel$'
    absent tree/build/build.ninja
}

. "$(dirname "$0")/harness.sh"
