#!/bin/sh
# A server whose defaults, and an account whose init_connect, have changed what can be changed: what ends a transaction,
# how statements are read, how many rows they give. Locks are what they are elsewhere. One line a rule, "ok" or "FAIL".
here=$(cd -P -- "$(dirname -- "$0")" && pwd) || exit 69
# shellcheck source=tests/fleet/fleet.sh
. "$here/../fleet/fleet.sh"
# shellcheck source=tests/fleet/mariadb.sh
. "$here/../fleet/mariadb.sh"
# shellcheck source=tests/fleet/rules.sh
. "$here/../fleet/rules.sh"

odd="completion_type = CHAIN, sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,IGNORE_SPACE,NO_UNSIGNED_SUBTRACTION',
    time_zone = '+13:00', sql_select_limit = 1, sql_safe_updates = 1, sql_auto_is_null = 1, unique_checks = 0, group_concat_max_len = 4,
    collation_connection = latin1_bin, character_set_results = latin1, div_precision_increment = 0"
fleet_mariadb mariadb
fleet_mariadb_sql -e "CREATE DATABASE locks; CREATE USER app IDENTIFIED BY 'secret';
    GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON locks.* TO app; GRANT PROCESS ON *.* TO app" || exit 69
tcp=127.0.0.1:$maria_port
check "setup" hf setup -u "mysql://root@$tcp/locks"
global=$(printf '%s' "$odd" | sed 's/, \([a-z_]* =\)/, GLOBAL \1/g; s/^ *\([a-z_]* =\)/GLOBAL \1/')
fleet_mariadb_sql -e "SET $global; SET GLOBAL autocommit = 0; SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY;
    SET GLOBAL init_connect = \"SET $odd; SET autocommit = 0; SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED\"" || exit 69
plain=mysql://root@$tcp/locks
url=mysql://app@$tcp/locks
echo secret >"$fleet_dir/password"
chmod 600 "$fleet_dir/password"
app="$url?password_file=$fleet_dir/password"

ticket_of() {
    hf lock -u "$1" --json --ttl 20s "$2" | sed 's/.*"ticket":"\([0-9a-f]*\)".*/\1/'
}
beside() {
    hf run -u "$1" "$3" -- env -u HOLDFAST_HELD "$HOLDFAST" run -u "$2" -n "$3" -- true
}
count_ls() {
    test "$(hf ls -u "$1" | grep -c "$2")" = "$3"
}
for way in hold=lease hold=session; do
    check "c2_what was released stays so: $way" hf run -u "$app&$way" "a\\ñ" -- true
    check "c2_also for another connection: $way" hf run -n -u "$app&$way" "a\\ñ" -- true
    check "c1_kept out by others: $way" says 'somebody else holds it' beside "$plain?$way" "$app&$way" "na\\m'"
    check "c1_keeps others out: $way" says 'somebody else holds it' beside "$app&$way" "$plain?$way" "na\\m'"
    check "c5_waits and gives up: $way" says 'not obtained in time' hf run -u "$plain?$way" waits -- \
        env -u HOLDFAST_HELD "$HOLDFAST" run -u "$app&$way" -w 200ms waits -- true
    check "nothing waits any more: $way" hf run -n -u "$plain?$way" waits -- true
    check "readers: $way" hf run -s -u "$app&$way" readers -- "$HOLDFAST" run -s -u "$app&$way" readers2 -- true
    check "show: $way" shows 'inside' hf run -u "$app&$way" show-me -- "$HOLDFAST" show -u "$app&$way" show-me
    check "gc: $way" hf gc --retain 1ms -u "$app&$way"
    check "doctor: $way" hf doctor -u "$app&$way"
    check "one who waits is let in: $way" sh -c '"$HOLDFAST" run -u "$1" turn -- sh -c "until test -e $2.2; do sleep 0.02; done; rm $2.2" &
        "$HOLDFAST" run -u "$1" -w 20s other -- touch "$2.2"; "$HOLDFAST" run -u "$1" -w 20s turn -- true && wait' - "$app&$way" "$fleet_dir/$way"
done
for n in 1 2 3; do
    hf lock -u "$app" --ttl 20s "many-$n" >/dev/null
done
check "ls shows all, not the first" count_ls "$app" "many-." 3
check "renew" hf renew -u "$app" --ticket "$(ticket_of "$app" renewed)" renewed
check "break" hf break -u "$app" --now --ticket "$(ticket_of "$app" broken)" broken
check "unlock" hf unlock -u "$app" --ticket "$(ticket_of "$app" unlocked)" unlocked
check "c2_and it is free" hf run -n -u "$plain" unlocked -- true
check_crowd -u "$app"
fleet_mariadb_sql locks -e "DROP PROCEDURE holdfast_routines"
check "setup by who has changed them" hf setup -u "$plain"
check "whose procedures work" hf run -u "$app" job -- true
exit "$failed"
