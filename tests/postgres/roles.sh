#!/bin/sh
# Roles that have changed what they could: every setting that changes how a statement is read, what it finds, or how its
# answer is written. Their locks and those of everybody else exclude each other (C1), and every verb works for them.
# One line a rule, "ok" or "FAIL".
here=$(cd -P -- "$(dirname -- "$0")" && pwd) || exit 69
# shellcheck source=tests/fleet/fleet.sh
. "$here/../fleet/fleet.sh"
# shellcheck source=tests/fleet/postgres.sh
. "$here/../fleet/postgres.sh"
# shellcheck source=tests/fleet/rules.sh
. "$here/../fleet/rules.sh"

fleet_postgres postgres
address=127.0.0.1:$pg_port/postgres
plain=postgres://postgres@$address
check "setup" hf setup -u "$plain"
fleet_psql -d postgres -f "$here/traps_first.sql" || exit 69

# role NAME [SETTING=VALUE...]: that may use the tables, and has changed these.
role() {
    name=$1
    shift
    {
        echo "CREATE ROLE $name LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO $name;"
        echo "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO $name; GRANT pg_read_all_stats TO $name;"
        for setting; do
            echo "ALTER ROLE $name SET ${setting%%=*} = ${setting#*=};"
        done
    } | fleet_psql -d postgres
}
role trapped "search_path=first, pg_catalog, public"
role odd standard_conforming_strings=off backslash_quote=on escape_string_warning=off bytea_output=escape \
    "DateStyle='SQL, DMY'" IntervalStyle=sql_standard TimeZone="'Pacific/Auckland'" extra_float_digits=-15 \
    client_encoding=LATIN1 array_nulls=off default_transaction_isolation=serializable default_transaction_deferrable=on \
    "plpgsql.extra_errors='all'" "plpgsql.extra_warnings='all'" plpgsql.variable_conflict=use_variable row_security=off \
    transform_null_equals=on check_function_bodies=off client_min_messages=debug5 enable_indexscan=off \
    enable_bitmapscan=off enable_seqscan=off enable_sort=off enable_nestloop=off jit=on jit_above_cost=0 \
    from_collapse_limit=1 plan_cache_mode=force_generic_plan work_mem=64 idle_session_timeout="'3s'" \
    client_connection_check_interval=0

ticket_of() {
    hf lock -u "$1" --json --ttl 20s "$2" | sed 's/.*"ticket":"\([0-9a-f]*\)".*/\1/'
}
# What excludes whom: somebody else tries what is held.
beside() {
    hf run -u "$1" "$3" -- env -u HOLDFAST_HELD "$HOLDFAST" run -u "$2" -n "$3" -- true
}
for role in trapped odd; do
    url=postgres://$role@$address
    for way in hold=lease hold=session hold=advisory; do
        check "$role: a lock is had: $way" hf run -u "$url?$way" "a\\ñ$role" -- true
        check "c1_$role is kept out by others: $way" says 'somebody else holds it' beside "$plain?$way" "$url?$way" 'na\x6dm'
        check "c1_$role keeps others out: $way" says 'somebody else holds it' beside "$url?$way" "$plain?$way" 'na\x6dm'
        check "c1_$role keeps itself out: $way" says 'somebody else holds it' beside "$url?$way" "$url?$way" 'na\x6dm'
        check "c5_$role waits and gives up: $way" says 'not obtained in time' hf run -u "$plain?$way" waits -- \
            env -u HOLDFAST_HELD "$HOLDFAST" run -u "$url?$way" -w 200ms waits -- true
        check "$role: nothing waits any more: $way" hf run -n -u "$plain?$way" waits -- true
        check "$role: a reader: $way" hf run -s -u "$url?$way" readers -- true
        check "$role: show finds the holder: $way" shows 'inside' hf run -u "$url?$way" show-me -- "$HOLDFAST" show -u "$url?$way" show-me
        check "$role: ls finds the holder: $way" shows 'show-me' hf run -u "$url?$way" show-me -- "$HOLDFAST" ls -u "$url?$way"
        check "$role: gc: $way" hf gc --retain 1ms -u "$url?$way"
        check "$role: doctor: $way" hf doctor -u "$url?$way"
    done
    check "$role: check" hf run -u "$url" checked -- sh -c '"$HOLDFAST" check -u "$1" "$HOLDFAST_SEQUENCER"' - "$url"
    check "$role: renew" hf renew -u "$url" --ticket "$(ticket_of "$url" renewed)" renewed
    check "$role: break" hf break -u "$url" --now --ticket "$(ticket_of "$url" broken)" broken
    check "$role: unlock" hf unlock -u "$url" --ticket "$(ticket_of "$url" unlocked)" unlocked
done
fleet_psql -d postgres -c "ALTER ROLE postgres SET search_path = first, pg_catalog, public" \
    -c "ALTER ROLE postgres SET standard_conforming_strings = off"
check "setup by a role that has changed them" hf setup -u "$plain"
check "setup of another schema by such a role" hf setup -u "$plain?schema=other"
check "whose locks work" hf run -u "$plain?schema=other" job -- true
role readonly default_transaction_read_only=on
check "a role that may not write is told" says 'read-only' hf run -u "postgres://readonly@$address?op_timeout=300ms" job -- true
exit "$failed"
