# shellcheck shell=sh disable=SC2154 # fleet_dir is of fleet.sh
# Servers of versions that are not installed here: fetched once, by the ordinary clients of their registries, into a
# cache directory, where they stay. Sourced after fleet.sh. What cannot be had is skipped, and said.
: "${fleet_dir:?}"

# Servers that root starts run as somebody else, who cannot look into root's home.
if [ -n "${XDG_CACHE_HOME-}" ] || [ "$(id -u)" -ne 0 ]; then
    fleet_cache=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast-tests
else
    fleet_cache=/var/cache/holdfast-tests
fi

# fleet_once NAME COMMAND...: the directory that `COMMAND... DIRECTORY` has filled in; sets `fetched`. Tests run beside
# each other, so it is done under a lock.
fleet_once() {
    fetched=$fleet_cache/$1
    [ -e "$fetched/complete" ] && return
    mkdir -p "$fetched" || fleet_skip "cannot write to $fleet_cache"
    shift
    (
        flock 9
        [ -e "$fetched/complete" ] && exit 0
        echo "fleet: fetching ${fetched##*/} into $fleet_cache" >&2
        "$@" "$fetched" >"$fetched.log" 2>&1 && : >"$fetched/complete"
    ) 9>"$fetched.lock" || fleet_skip "${fetched##*/} could not be fetched: $(grep -m1 -i error "$fetched.log")"
}

# fetch_maven GROUP:ARTIFACT:VERSION DIRECTORY: what is in the jar.
fetch_maven() {
    command -v mvn || { echo "error: Maven is not installed (maven)"; return 1; }
    mvn -B -q -Dstyle.color=never dependency:copy "-Dartifact=$1" "-DoutputDirectory=$2/jar" &&
        python3 -m zipfile -e "$2"/jar/*.jar "$2" && rm -r "$2/jar"
}

# fetch_debian SUITE "PACKAGE..." DIRECTORY: the packages of a suite of Debian and all that they need, down to the C
# library, unpacked and not installed: fleet_loader runs what is in there. The mirror is the one that this system uses.
fetch_debian() {
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' | sed -n 's/ Debian$//p' | head -n 1)
    [ -n "$mirror" ] || { echo "error: this system has no mirror of Debian"; return 1; }
    mkdir -p "$3/apt/lists/partial" "$3/apt/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" >"$3/apt/sources.list"
    cat >"$3/apt/apt.conf" <<END
Dir::Etc::sourcelist "$3/apt/sources.list"; Dir::Etc::sourceparts "/dev/null"; Dir::State::lists "$3/apt/lists";
Dir::State::status "/dev/null"; Dir::Cache::archives "$3/apt/archives"; Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache ""; Acquire::Languages "none"; APT::Sandbox::User "";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false"; Debug::NoLocking "true";
END
    # shellcheck disable=SC2086 # a list of packages
    APT_CONFIG=$3/apt/apt.conf apt-get -q update &&
        APT_CONFIG=$3/apt/apt.conf apt-get -q -y --download-only --no-install-recommends install $2 || return 1
    for package in "$3"/apt/archives/*.deb; do
        dpkg-deb -x "$package" "$3" || return 1
    done
    rm -r "$3/apt"
}

# fetch_go PACKAGE VERSION PROGRAM DIRECTORY: a program of a Go module, built. Its module may replace others by its
# neighbours, which only counts where it is the main one: so a module of our own needs it. Debian's Go is too old for
# some; a newer compiler is a module too, of which files lose their right to be run.
go_needed=1.26.0
fetch_go() {
    command -v go || { echo "error: Go is not installed (golang-go)"; return 1; }
    (
        cd "$4" || exit 1
        export GOFLAGS=-buildvcs=false GOTOOLCHAIN=local
        rm -f go.mod go.sum
        oldest=$(printf 'go%s\n%s\n' "$go_needed" "$(go env GOVERSION)" | sort -V | head -n 1)
        if [ "$oldest" != "go$go_needed" ]; then
            go mod init holdfast/tests/fleet &&
                go mod download "golang.org/toolchain@v0.0.1-go$go_needed.$(go env GOOS)-$(go env GOARCH)" || exit 1
            rm -f go.mod go.sum
            compiler=$(go env GOMODCACHE)/golang.org/toolchain@v0.0.1-go$go_needed.$(go env GOOS)-$(go env GOARCH)
            chmod +x "$compiler"/bin/* "$compiler"/pkg/tool/*/*
            PATH=$compiler/bin:$PATH
        fi
        go mod init holdfast/tests/fleet && go get "$1@v$2" && go build -o "$3" "$1"
    )
}

# fleet_loader ROOT: how a program of such a directory is run, by the loader and the libraries that are in it. Before
# Debian 12 some of them were not below usr.
fleet_loader() {
    for libc in "$1"/usr/lib/*/libc.so.6 "$1"/lib/*/libc.so.6; do
        lib=$(basename "$(dirname "$libc")")
        for loader in "$(dirname "$libc")"/ld-[0-9]*.so "$(dirname "$libc")"/ld-linux-*.so.* "$1"/usr/lib64/ld-linux-*.so.*; do
            [ -x "$loader" ] && [ ! -h "$loader" ] || continue
            echo "$loader --library-path $1/lib/$lib:$1/usr/lib/$lib:$1/usr/lib/mysql/private"
            return
        done
    done
    return 1
}
