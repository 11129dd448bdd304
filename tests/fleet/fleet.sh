# shellcheck shell=sh
# Real servers for tests: on loopback, on free ports, in a directory that is thrown away, stopped by
# their process ids. Sourced by the with-* commands beside it.

fleet_dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-fleet.XXXXXX") || exit 69
fleet_pids=
export HOLDFAST_TEST_FLEET="$fleet_dir"

fleet_stop() {
    status=$?
    trap - EXIT INT TERM HUP
    for pid in $fleet_pids; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    rm -rf "$fleet_dir"
    exit "$status"
}
trap fleet_stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Says why the test cannot run; Meson counts 77 as skipped.
fleet_skip() {
    echo "SKIPPED: $*" >&2
    exit 77
}

# A port that nobody uses now. Servers that find it taken after all are started again on another.
fleet_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Waits until a command succeeds, 10 s at most.
fleet_until() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 500 ] || return 1
        sleep 0.02
    done
}

# fleet_word WORD VALUE: what a word such as @URL@ stands for in the arguments of the command.
fleet_words=
fleet_word() {
    fleet_words="$fleet_words$1 $2
"
}

# fleet_fill ARGUMENT: the same with the words replaced.
fleet_fill() {
    filled=$1
    while read -r word value; do
        [ -n "$word" ] || continue
        case $filled in
        *"$word"*) filled=${filled%%"$word"*}$value${filled#*"$word"} ;;
        esac
    done <<EOF
$fleet_words
EOF
    printf '%s' "$filled"
}

# fleet_run COMMAND...: the command, with the words in its arguments replaced.
fleet_run() {
    count=$#
    while [ "$count" -gt 0 ]; do
        set -- "$@" "$(fleet_fill "$1")"
        shift
        count=$((count - 1))
    done
    "$@"
}

# fleet_redis NAME [OPTION...]: starts a redis-server; sets redis_port, redis_socket and redis_pid.
fleet_redis() {
    command -v redis-server >/dev/null 2>&1 || fleet_skip "redis-server is not installed"
    redis_dir=$fleet_dir/$1
    shift
    mkdir -p "$redis_dir"
    redis_socket=$redis_dir/redis.sock
    for attempt in 1 2 3; do
        redis_port=$(fleet_port)
        redis-server --bind 127.0.0.1 --port "$redis_port" --unixsocket "$redis_socket" \
            --dir "$redis_dir" --save '' --appendonly no --daemonize no \
            --logfile "$redis_dir/log" "$@" </dev/null >/dev/null 2>&1 &
        redis_pid=$!
        if fleet_until redis_answers; then
            fleet_pids="$fleet_pids $redis_pid"
            return 0
        fi
        echo "fleet: redis-server did not start (try $attempt)" >&2
        kill "$redis_pid" 2>/dev/null
    done
    cat "$redis_dir/log" >&2
    exit 69
}

redis_answers() {
    redis-cli -s "$redis_socket" ping | grep -Eq 'PONG|NOAUTH|LOADING'
}
