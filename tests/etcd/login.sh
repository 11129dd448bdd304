#!/bin/sh
# Users, passwords, TLS and certificates of our own. shellcheck disable=SC2317
# shellcheck disable=SC1091,SC2154
. "$(dirname "$0")/lib.sh"

certificates() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem \
        -addext keyUsage=keyCertSign,digitalSignature 2>/dev/null
    for name in server client; do
        openssl req -newkey rsa:2048 -nodes -subj "/CN=$name" -keyout $name.key -out $name.csr 2>/dev/null
        printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n' >ext
        openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext \
            -out $name.pem 2>/dev/null
    done
}

# The server hangs up without a word, before anything was asked.
not_obtained() {
    status_is 69
    err_has "$1"
}

test_user_and_password() {
    start_server http
    add_root
    $plain auth enable >/dev/null
    root="$plain --user root:rootword"
    $root role add locks >/dev/null
    $root role grant-permission locks --prefix=true readwrite team/ >/dev/null
    $root user add worker --new-user-password=w0rd >/dev/null
    $root user grant-role worker locks >/dev/null

    HOLDFAST_URL=etcd://worker:w0rd@$address/team hf run a -- true
    status_is 0
    HOLDFAST_URL=etcd://worker:wrong@$address/team hf run a -- true
    status_is 69
    lacks err 'wrong'
    HOLDFAST_URL=etcd://$address/team hf run a -- true
    status_is 69
    err_has 'name a user and its password in the URL'
    HOLDFAST_URL=etcd://worker:w0rd@$address/elsewhere hf run --ttl 1h a -- true
    status_is 69
    $root lease list | grep -q 'found 0 leases' # what was asked for in vain stays no hour
    err_has 'permission denied .this user must be allowed to read and write below the prefix'
    echo w0rd >password
    HOLDFAST_URL="etcd://worker@$address/team?password_file=$PWD/password" hf run a -- true
    status_is 0

    # A token that the server has forgotten is renewed without a word.
    HOLDFAST_URL=etcd://worker:w0rd@$address/team
    export HOLDFAST_URL
    hold a --ttl 10s
    $root user passwd worker --interactive=false >/dev/null <<END
w0rd2
END
    $root user passwd worker --interactive=false >/dev/null <<END
w0rd
END
    eventually more_answered "$(answered Txn "$address")" Txn "$address" # the proof of a renewal
    kill -0 "$held_pid"
    let_go
    [ "$code" -eq 0 ]
}

# A signed token carries the user's name and a signature.
test_token_may_be_long() {
    openssl genrsa -out jwt.key 4096 2>/dev/null
    openssl rsa -in jwt.key -pubout -out jwt.pub 2>/dev/null
    start_server http --auth-token jwt,pub-key=jwt.pub,priv-key=jwt.key,sign-method=RS512
    plain="etcdctl --endpoints $address"
    name=$(printf '%0600d' 7)
    $plain user add root --new-user-password=rootword >/dev/null
    $plain role add root >/dev/null
    $plain user grant-role root root >/dev/null
    $plain user add "$name" --new-user-password=w0rd >/dev/null
    $plain user grant-role "$name" root >/dev/null
    $plain auth enable >/dev/null
    HOLDFAST_URL=etcd://$name:w0rd@$address/team hf run a -- true
    status_is 0
}

test_tls_is_verified() {
    certificates
    start_server https --cert-file server.pem --key-file server.key
    HOLDFAST_URL="etcd://$address/?tls=verify&tls_ca=$PWD/ca.pem" hf run a -- true
    status_is 0
    HOLDFAST_URL="etcd://$address/?tls_ca=$PWD/ca.pem" hf run a -- true # on loopback, too
    status_is 0
    HOLDFAST_URL="etcd://$address/?tls=verify" hf run a -- true
    status_is 69
    err_has 'tls_ca=FILE'
    HOLDFAST_URL="etcd://$address/?tls=insecure" hf run a -- true
    status_is 0
    HOLDFAST_URL="etcd://$address/?tls=insecure" hf doctor
    out_has 'tls=insecure'
    HOLDFAST_URL="etcd://$address/?op_timeout=1s" hf run a -- true
    not_obtained 'tls=verify'
}

test_certificate_of_our_own() {
    certificates
    start_server https --cert-file server.pem --key-file server.key --client-cert-auth \
        --trusted-ca-file ca.pem
    own="tls=verify&tls_ca=$PWD/ca.pem&tls_cert=$PWD/client.pem&tls_key=$PWD/client.key"
    HOLDFAST_URL="etcd://$address/?$own" hf run a -- true
    status_is 0
    HOLDFAST_URL="etcd://$address/?tls=verify&tls_ca=$PWD/ca.pem&op_timeout=1s" hf run a -- true
    not_obtained 'tls_cert=FILE'
}

# The user is the one whom the certificate names; nobody has a password.
test_certificate_is_the_user() {
    certificates
    start_server https --cert-file server.pem --key-file server.key --client-cert-auth \
        --trusted-ca-file ca.pem
    plain="etcdctl --endpoints https://$address --cacert ca.pem --cert client.pem --key client.key"
    $plain user add root --new-user-password=rootword >/dev/null
    $plain user grant-role root root >/dev/null 2>&1 || { $plain role add root && $plain user grant-role root root; } >/dev/null
    $plain role add locks >/dev/null
    $plain role grant-permission locks --prefix=true readwrite team/ >/dev/null
    $plain user add client --new-user-password=never-used >/dev/null
    $plain user grant-role client locks >/dev/null
    $plain auth enable >/dev/null
    own="tls_ca=$PWD/ca.pem&tls_cert=$PWD/client.pem&tls_key=$PWD/client.key"
    HOLDFAST_URL="etcd://$address/elsewhere?$own" hf run a -- true
    status_is 69
    err_has 'permission denied'
    HOLDFAST_URL="etcd://$address/team?$own"
    export HOLDFAST_URL
    hf doctor
    out_has 'may read and write'
    hold a
    "$HOLDFAST" run a -- touch second & # what it watches is allowed, too
    second=$!
    eventually waits_for a
    let_go
    wait "$second"
    exists second
}

# Locks need no gateway: it can be off.
test_server_without_a_gateway() {
    start_server http --enable-grpc-gateway=false
    HOLDFAST_URL=etcd://$address/test
    export HOLDFAST_URL
    hold a
    "$HOLDFAST" run a -- touch second &
    second=$!
    eventually waits_for a
    let_go
    wait "$second"
    exists second
}

# What answers is no etcd, or nothing that we could ask.
test_what_is_no_etcd_is_told() {
    port=$(free_port)
    python3 -m http.server --bind 127.0.0.1 "$port" >/dev/null 2>&1 &
    web=$!
    eventually nc_listens "$port"
    HOLDFAST_URL="etcd://127.0.0.1:$port/test?op_timeout=2s" hf run a -- true
    kill "$web"
    status_is 69
    err_has 'does not speak HTTP/2|closed the connection'
}

waits_for() {
    "$HOLDFAST" show "$1" | grep -q waiting
}

test_wait_over_tls_is_pushed() {
    certificates
    start_server https --cert-file server.pem --key-file server.key
    HOLDFAST_URL="etcd://$address/?tls=verify&tls_ca=$PWD/ca.pem"
    export HOLDFAST_URL
    hold a
    "$HOLDFAST" run a -- touch second &
    second=$!
    eventually waits_for a
    let_go
    wait "$second"
    exists second
}

test_urls_that_make_no_sense_are_refused() {
    for url in 'etcd://h/?tls=maybe' 'etcd://user@h/' 'etcd://h/?tls=off&tls_ca=/etc/passwd' \
        'etcd://h,,i/' 'etcd://h/?tls_ca=/nowhere/at/all' 'etcd://u:%FF@h/'; do
        HOLDFAST_URL=$url hf run a -- true
        [ "$status" -eq 64 ] || [ "$status" -eq 69 ] || fail "$url: $status"
        err_has '^holdfast: '
        lacks err 'memory'
    done
}

test_user_that_nobody_asked_for() {
    start_server http
    HOLDFAST_URL=etcd://worker:w0rd@$address/team hf run a -- true
    status_is 69
    err_has 'leave user and password out of the URL'
    lacks err w0rd
}

test_name_that_looks_like_loopback_is_none() {
    HOLDFAST_URL='etcd://127.example.invalid/?op_timeout=1s' hf run a -- true
    status_is 69
    err_has 'https://127.example.invalid'
}

. "$(dirname "$0")/../cli/harness.sh"
