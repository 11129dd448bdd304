# setup, gc, doctor, stores, bench.

test_setup_creates_the_store() {
    hf setup
    status_is 0
    out_is "$HOLDFAST_URL is ready"
    exists store/locks.db
    hf setup --json
    status_is 0
    json ".[0] == {url: \"$HOLDFAST_URL\", ready: true}"
    hf setup -q
    out_is_empty
}

test_setup_print_does_not_touch_the_store() {
    hf setup --print
    status_is 0
    out_has 'CREATE TABLE'
    absent store/locks.db
    hf setup --print --json
    json '.[0].store == "sqlite" and (.[0].ddl | contains("CREATE TABLE"))'
    hf -u "trace+sqlite:$PWD/x" setup --print
    out_has 'CREATE TABLE'
    hf -u memory://x setup --print
    status_is 0
    out_is '# memory needs nothing'
    hf -u gopher://x setup --print
    refused 69 "no store 'gopher:'"
}

test_setup_print_has_the_names_of_the_url() {
    hf stores cassandra
    ! grep -q missing out || skip "the module cassandra is not there"
    hf -u trace+cassandra://node/orders setup --print
    status_is 0
    out_has '^CREATE TABLE IF NOT EXISTS orders\.locks '
    out_has 'CREATE KEYSPACE orders '
    lacks out 'holdfast\.'
    hf -u cassandra://node setup --print
    out_has '^CREATE TABLE IF NOT EXISTS holdfast\.locks '
    hf -u 'cassandra://node/a;b' setup --print
    refused 64 'cassandra: the path of the URL is the keyspace'
}

test_setup_print_of_a_store_that_is_missing_says_so() {
    HOLDFAST_MODULES=$PWD/nowhere
    export HOLDFAST_MODULES
    for scheme in redis rediss etcd trace+redis; do
        hf -u "$scheme://node" setup --print
        refused 69 'its module .*/nowhere/.* is not there'
        hf -u "$scheme://node" setup --print --json
        refused 69 'its module .*/nowhere/.* is not there'
    done
}

test_the_printed_setup_is_what_setup_makes() {
    hf setup --print
    status_is 0
    cp out schema.sql
    hf setup -q
    status_is 0
    python3 - <<'END'
import sqlite3
def tables(db):
    return sorted(r for r in db.execute("SELECT type, name, sql FROM sqlite_master"))
made = sqlite3.connect("store/locks.db")
printed = sqlite3.connect(":memory:")
printed.executescript(open("schema.sql").read())
assert tables(made) == tables(printed), (tables(made), tables(printed))
END
}

test_gc_counts_what_it_removes() {
    hf lock -q kept --ttl 1m
    hf bench --count 1
    hf gc
    status_is 0
    out_is 'removed 0 idle records'
    eventually gc_removes_one
    hf show -q kept
    status_is 0
    hf gc --retain 10ms -q
    out_is_empty
}

# Its ticket must not come back by a late request.
test_gc_keeps_what_was_broken_just_now() {
    hf lock -q x --never-expires
    hf break x --ticket "$(cat out)" -q
    status_is 0
    sleep 0.1 # so that it has been idle for longer than the 10 ms
    hf gc --retain 10ms
    out_is 'removed 0 idle records'
}

gc_removes_one() {
    "$HOLDFAST" gc --retain 10ms --json | jq -e '.removed == 1' >/dev/null
}

test_doctor_finds_a_sound_store_sound() {
    hf doctor
    status_is 0
    out_has '^fine +a trial lock was taken and released in '
    out_has '^fine +C9 +'
    hf doctor --json
    status_is 0
    json '(.[:-1] | all(.level | IN("fine", "note", "warning", "problem")) and any(.clause == "C3"))
          and (.[-1] | .verdict == "the store works" and .problems == 0 and .warnings == 0)'
    hf doctor
    [ "$(tail -n 1 out)" = 'verdict       the store works (0 problems, 0 warnings)' ] || fail 'no verdict'
    hf doctor -q
    status_is 0
    out_is_empty
    nothing_left
}

test_doctor_visits_the_store_that_is_named() {
    hf -u gopher://x doctor "$HOLDFAST_URL"
    status_is 0
    out_has '^fine +a trial lock was taken and released in '
    hf doctor gopher://x
    refused 69 "no store 'gopher:'"
    hf doctor 'gopher://u:s3cret@x'
    err_has 'a password on the command line can be seen by everybody'
    lacks err s3cret
}

test_doctor_tells_a_problem() {
    hf -u "fault+$HOLDFAST_URL?fail=attempt:*&op_timeout=200ms" doctor
    status_is 1
    out_has '^problem +C6 +a trial lock failed'
    tail -n 1 out | grep -q '^verdict  *do not rely on this store before the problems are fixed (1 problem, 0 warnings)$'
}

test_doctor_tells_what_a_store_lacks() {
    hf -u memory://x doctor --json
    status_is 0
    json 'any(.level == "note" and (.text | test("several processes")))'
}

test_doctor_tells_why_waiters_are_not_called() {
    hf doctor
    lacks out 'ask by themselves'
    out_has '^fine +C12 +it has: waiters are woken'
    mkdir -m 755 store/locks.db.wake
    chmod 755 store/locks.db.wake
    hf doctor
    status_is 0
    out_has "^warning +C12 +'.*/locks.db.wake' is not a directory of ours alone .*ask by themselves"
    out_has '^note +C12 +it has not: waiters are woken'
}

test_stores_lists_them_with_their_capabilities() {
    hf stores
    status_is 0
    out_has '^memory  memory:'
    out_has '^sqlite  sqlite:'
    out_has '^  cannot .*process'
    hf stores --json
    json 'map(.name) | contains(["memory", "sqlite", "trace", "fault"])'
    json 'map(select(.name == "trace"))[0].capabilities == null'
    json 'map(select(.name == "sqlite"))[0] | .usable and .missing == null and .capabilities.token
          and .capabilities.process and .schemes == ["sqlite:"]'
    json 'map(select(.name == "sqlite"))[0].options | map(select(.name == "op_timeout"))[0]
          | .default == "5s" and (.help | test("request"))'
    hf stores sqlite
    status_is 0
    out_has '^  option +op_timeout='
    hf stores frob
    refused 69 "no store 'frob'"
}

test_stores_says_why_one_is_missing() {
    HOLDFAST_MODULES=$PWD/nowhere
    export HOLDFAST_MODULES
    hf stores --json
    status_is 0
    json 'map(select(.name == "trace"))[0] | .usable == false and (.missing | test("module"))'
    hf stores trace
    status_is 0
    out_has '^  missing .*install'
}

test_a_missing_module_names_its_libraries() {
    HOLDFAST_MODULES=$PWD/nowhere
    export HOLDFAST_MODULES
    hf -u etcd://node ls
    refused 69 "etcd: its module .*/nowhere/holdfast-etcd.so is not there: .* nghttp2 and OpenSSL"
}

test_bench_measures() {
    hf bench --count 20
    status_is 0
    out_has '^20 rounds of acquire and release, [0-9]+ a second$'
    out_has '^p50 [0-9.]+ us, p90 [0-9.]+ us, p99 [0-9.]+ us, longest [0-9.]+ us$'
    hf bench --json --threads 3 --count 5
    status_is 0
    json '.[0] | .threads == 3 and .rounds == 15 and .p50_ns <= .p90_ns and .p90_ns <= .p99_ns
          and .p99_ns <= .max_ns and .per_second > 0'
    hf -u memory://x bench --json --same --threads 2 --count 50
    json '.[0].rounds == 100'
    nothing_left
}

# Beside a reader, for whom an exclusive round would wait.
test_bench_of_shared_locks() {
    hf lock -q -s holdfast/bench/0 --ttl 1h
    status_is 0
    for word in -s --shared; do
        hf bench --json $word --count 3
        status_is 0
        json '.[0].rounds == 3'
    done
}

test_bench_reports_a_failing_store() {
    hf -u "fault+$HOLDFAST_URL?fail=attempt:3-&op_timeout=200ms" bench --count 20
    refused 69 'holdfast/bench/0'
}

# Its lease is 5 s, and the release comes later.
test_bench_that_loses_a_lock_is_1() {
    hf -u "fault+$HOLDFAST_URL?delay=release:2:5100ms&op_timeout=30s" bench --count 3
    refused 1 "release 'holdfast/bench/0': not, or no longer, held"
    nothing_left
}

. "$(dirname "$0")/harness.sh"
