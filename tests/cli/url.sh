# Where the URL comes from, and what is refused.

# A config file with these lines and this mode.
write_config() {
    mkdir -p "$(dirname "$1")"
    printf '%s\n' "$3" >"$1"
    chmod "$2" "$1"
}

test_option_wins_over_environment() {
    mkdir other
    hf -u "sqlite:$PWD/other/locks.db" lock -q x --ttl 5s
    status_is 0
    exists other/locks.db
    absent store/locks.db
}

test_environment_wins_over_config() {
    mkdir other
    write_config .config/holdfast/config 600 "url = sqlite:$PWD/other/locks.db"
    hf lock -q x --ttl 5s
    status_is 0
    exists store/locks.db
    absent other/locks.db
}

test_config_names_the_store() {
    unset HOLDFAST_URL
    write_config .config/holdfast/config 644 "# ours

  url =  sqlite:$PWD/store/locks.db  "
    hf lock -q x --ttl 5s
    status_is 0
    exists store/locks.db
}

test_xdg_config_home_is_used() {
    unset HOLDFAST_URL
    XDG_CONFIG_HOME=$PWD/xdg
    export XDG_CONFIG_HOME
    write_config .config/holdfast/config 644 'url = nonsense:'
    write_config xdg/holdfast/config 644 "url = sqlite:$PWD/store/locks.db"
    hf lock -q x --ttl 5s
    status_is 0
    exists store/locks.db
}

# A variable that a script failed to fill must not choose another store.
test_empty_environment_is_refused() {
    write_config .config/holdfast/config 644 "url = sqlite:$PWD/store/locks.db"
    HOLDFAST_URL=
    hf lock -q x --ttl 5s
    refused 64 'HOLDFAST_URL is set but empty'
    absent store/locks.db
    hf -u '' ls
    refused 64 'scheme'
}

test_url_without_its_password_is_refused() {
    HOLDFAST_URL="sqlite://me:***@$PWD/store/locks.db"
    hf ls
    refused 64 'has its password removed.*password_file'
    hf -u 'redis://h/0?password=***' doctor
    status_is 64
    err_has 'has its password removed'
    HOLDFAST_URL='***'
    hf ls
    refused 64 'has its password removed'
    absent store/locks.db
}

test_without_a_url_the_embedded_store_is_used() {
    [ "$(id -u)" -ne 0 ] || skip "root's is not to be touched"
    unset HOLDFAST_URL
    hf lock -q x --ttl 5s
    status_is 0
    exists .local/state/holdfast/locks.db
}

test_a_user_without_a_home_is_told_what_to_set() {
    unshare -U true 2>/dev/null || skip 'somebody else than root needs a user namespace'
    status=0 last='holdfast ls without a home'
    env -u HOLDFAST_URL HOME=/proc/nowhere unshare -U "$HOLDFAST" ls >out 2>err || status=$?
    refused 69 'set XDG_STATE_HOME, or name a store by its URL.*/proc/nowhere cannot be made'
}

# As systemd starts a service with DynamicUser= and StateDirectory=.
test_a_service_without_a_home_has_its_state_directory() {
    unset HOLDFAST_URL
    mkdir -m 700 service
    unshare -U true 2>/dev/null || skip 'no user namespace can be made'
    HOME=/ STATE_DIRECTORY="$PWD/service:/nowhere" unshare -U "$HOLDFAST" run x -- true
    exists service/locks.db
    HOME=$PWD STATE_DIRECTORY="$PWD/other" unshare -U "$HOLDFAST" run x -- true
    exists .local/state/holdfast/locks.db
    absent other
    status=0 last='holdfast ls without any place'
    HOME=/ unshare -U "$HOLDFAST" ls >out 2>err || status=$?
    refused 69 'there is no home directory'
}

test_config_mistakes_are_refused() {
    unset HOLDFAST_URL
    write_config .config/holdfast/config 600 'colour = blue'
    hf ls
    refused 64 "config line 1: there is no setting 'colour'"
    write_config .config/holdfast/config 600 'url'
    hf ls
    refused 64 "config line 1: expected 'url = URL'"
    write_config .config/holdfast/config 600 'url ='
    hf ls
    refused 64 'line 1: expected one'
    write_config .config/holdfast/config 600 'url = memory://a
url = memory://b'
    hf ls
    refused 64 'line 2: expected one'
}

test_config_with_password_must_be_private() {
    unset HOLDFAST_URL
    write_config .config/holdfast/config 644 'url = memory://me:secret@x'
    hf ls
    refused 64 'holds a password.*chmod 600'
    lacks err secret
    chmod 600 .config/holdfast/config
    hf ls
    status_is 0
}

# No password is in it, so there is nothing to hide, to warn of or to refuse.
test_where_a_password_is_is_no_secret() {
    unset HOLDFAST_URL
    write_config .config/holdfast/config 644 'url = memory://x?password_file=/run/p'
    hf ls
    refused 64 'password_file'
    lacks err 'holds a password'
    hf -u 'memory://x?password_env=NOWHERE' ls
    refused 64 'password_env'
}

test_config_that_everybody_writes_is_refused() {
    unset HOLDFAST_URL
    write_config .config/holdfast/config 666 'url = memory://x'
    hf ls
    refused 64 'everybody can write .*chmod o-w'
}

test_config_of_another_user_is_refused() {
    [ "$(id -u)" -eq 0 ] || skip 'only root can give files away'
    unset HOLDFAST_URL
    write_config .config/holdfast/config 600 'url = memory://x'
    chown 65534 .config/holdfast/config
    hf ls
    refused 64 'belongs to another user'
}

test_config_that_cannot_be_read_is_not_skipped() {
    unset HOLDFAST_URL
    mkdir -p .config/holdfast/config
    hf ls
    refused 64 'config'
}

test_config_link_to_nowhere_is_not_skipped() {
    unset HOLDFAST_URL
    mkdir -p .config/holdfast
    ln -s /nowhere/config .config/holdfast/config
    hf ls
    refused 64 'config is there but cannot be used'
}

test_config_blank_in_the_url_is_refused() {
    unset HOLDFAST_URL
    write_config .config/holdfast/config 600 "url = sqlite:$PWD/store/locks.db # ours"
    hf ls
    refused 64 'line 1: there is a blank in the URL; write it as %20'
    absent "store/locks.db # ours"
    write_config .config/holdfast/config 600 "url = sqlite:$PWD/store/a%20b.db"
    hf lock -q x --ttl 5s
    status_is 0
    exists 'store/a b.db'
}

test_help_and_stores_do_not_need_the_config() {
    unset HOLDFAST_URL
    write_config .config/holdfast/config 666 'nonsense'
    hf help lock
    status_is 0
    hf stores
    status_is 0
}

test_wrong_urls_are_refused() {
    HOLDFAST_URL=nonsense
    hf ls
    refused 64 '.'
    HOLDFAST_URL=gopher://x
    hf ls
    refused 69 'gopher'
    HOLDFAST_URL="sqlite:$PWD/store/locks.db?frob=1"
    hf ls
    refused 64 'frob'
    HOLDFAST_URL="sqlite:$PWD/store/locks.db?op_timeout=soon"
    hf ls
    refused 64 'op_timeout'
    HOLDFAST_URL=sqlite:
    hf ls
    refused 64 '.'
    absent store/locks.db
}

test_missing_module_says_what_to_do() {
    HOLDFAST_MODULES=$PWD/nowhere
    export HOLDFAST_MODULES
    hf -u "trace+sqlite:$PWD/store/locks.db" ls
    refused 69 'module.*HOLDFAST_MODULES'
    absent store/locks.db
}

test_unusable_files_are_refused() {
    mkdir -p store/locks.db
    hf ls
    refused 69 'locks.db'
    rmdir store/locks.db
    echo 'this is no database, whatever else it may be' >store/locks.db
    hf ls
    refused 69 'not an SQLite database'
    chmod 644 store/locks.db
    hf ls
    refused 69 'name another path, or chmod 600 it if it is a database of holdfast'
    rm store/locks.db
    ln -s /etc/passwd store/locks.db
    hf ls
    refused 69 'locks.db'
    echo text >file
    HOLDFAST_URL=sqlite:$PWD/file/locks.db
    hf ls
    refused 69 'not a directory'
}

test_full_disk_is_told() {
    mkdir small
    unshare -rm mount -t tmpfs none small 2>/dev/null || skip 'mounting needs a user namespace'
    HOLDFAST_URL=sqlite:$PWD/small/locks.db
    status=0 last='holdfast lock on a full disk'
    # shellcheck disable=SC2016
    unshare -rm sh -c 'mount -t tmpfs -o size=32k,mode=700 none small
        "$HOLDFAST" lock x --ttl 5s' >out 2>err || status=$?
    refused 69 'disk is full; make room'
}

waits_for() {
    "$HOLDFAST" show --json "$1" | jq -e '.queue | length > 0' >/dev/null
}

test_password_on_the_command_line_is_warned_of_and_wiped() {
    hf lock -q x --ttl 1m
    "$HOLDFAST" -u memory://me:s3cret@x "--url=sqlite://me:s3cret@$PWD/store/locks.db" lock x --ttl 1m \
        >out 2>err &
    pid=$!
    eventually waits_for x
    tr '\0' ' ' <"/proc/$pid/cmdline" >cmdline
    kill "$pid"
    wait "$pid" || :
    grep -q ' -u xxx.* --url=xxx.* lock x --ttl 1m' cmdline
    lacks cmdline s3cret
    err_has 'can be seen by everybody with ps'
    lacks err s3cret
}

# Some stores have more options than fit into a message.
test_unknown_option_names_who_lists_all() {
    hf stores redis
    ! grep -q missing out || skip 'the module redis is not there'
    hf -u 'rediss://node?idle_timout=1s' ls
    refused 64 "redis: unknown option 'idle_timout': did you mean 'idle_timeout'\? 'holdfast stores rediss' lists all$"
    hf -u 'trace+redis://node?nonsense=1' ls
    refused 64 "unknown option 'nonsense': 'holdfast stores redis' lists those there are$"
    hf stores rediss
    status_is 0
    out_has '^  option +idle_timeout='
    out_has '^  option +retain='
}

test_unknown_scheme_lists_all_of_them() {
    hf -u gopher://x ls
    refused 69 "no store 'gopher:'; those known are memory:, sqlite:, .*, cassandra:$"
}

. "$(dirname "$0")/harness.sh"
