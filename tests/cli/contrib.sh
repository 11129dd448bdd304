# contrib/: the units are what systemd understands, the manifests what Kubernetes does, and what they start works.
# Neither runs here: no systemd is process 1, and there is no cluster.
. "$(dirname "$0")/run_lib.sh"

units() {
    command -v systemd-analyze >/dev/null || skip 'there is no systemd-analyze'
    mkdir units
    for unit in "$TREE"/contrib/systemd/*; do
        sed "s|/usr/bin/holdfast|$HOLDFAST|" "$unit" >"units/$(basename "$unit")"
    done
}

test_systemd_understands_the_units() {
    units
    systemd-analyze verify --man=no units/* >said 2>&1 || fail "$(cat said)"
    [ ! -s said ] || fail "$(cat said)"
}

# A figure from 0 to 100 of how much of the machine they see: what systemd calls 2.0 and "OK".
test_the_units_are_hardened() {
    units
    for unit in units/*.service; do
        systemd-analyze security --offline=true --threshold=20 "$unit" >said 2>&1 || fail "$(tail -n 1 said)"
    done
}

# What a unit starts, for the instance "report", with its program in this directory.
exec_start() {
    sed -n 's/^ExecStart=//p' "$TREE/contrib/systemd/$1" |
        sed "s|/usr/bin/holdfast|$HOLDFAST|; s|/etc/holdfast/[a-z]*|$PWD|; s|%i|report|g"
}

test_one_machine_of_the_fleet_does_the_job() {
    printf '#!/bin/sh\necho again >>started\nuntil [ -e end ]; do sleep 0.02; done\n' >report
    chmod +x report
    job=$(exec_start holdfast@.service)
    $job &
    eventually exists_now started
    gives 0 $job
    touch end
    ended_with 0 "$!"
    gives 0 $job
    [ "$(wc -l <started)" -eq 1 ]
}

exists_now() {
    [ -e "$1" ]
}

test_the_leader_leads_until_it_is_told_to_end() {
    printf '#!/bin/sh\ntouch leads\nexec sleep 60\n' >report
    chmod +x report
    leader=$(exec_start holdfast-leader@.service)
    $leader &
    eventually exists_now leads
    kill "$!"
    ended_with 143 "$!"
    is_free report
}

# Kubernetes' own schemas, in a package of PyPI that is fetched once.
kubernetes_python() {
    cache=${XDG_CACHE_HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)/.cache}/holdfast-tests
    packages=$cache/kubernetes-validate-$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if [ ! -e "$packages" ]; then
        timeout 50 python3 -m pip install -q --target fetched kubernetes-validate >said 2>&1 ||
            skip "kubernetes-validate could not be fetched from PyPI: $(tail -n 1 said)"
        mkdir -p "$cache"
        mv -T fetched "$packages" 2>/dev/null || packages=$PWD/fetched # somebody else was faster
    fi
    PYTHONPATH=$packages python3 "$@"
}

test_kubernetes_understands_the_manifests() {
    kubernetes_python - "$TREE"/contrib/kubernetes/*.yaml <<'X'
import sys, yaml, kubernetes_validate
newest = kubernetes_validate.latest_version()
count = 0
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        for resource in yaml.safe_load_all(file):
            kubernetes_validate.validate(resource, newest, strict=True)
            count += 1
assert count >= 5, count
X
}

# The sidecar: the file with the token is there while it leads, and goes when it is told to end.
test_the_sidecar_says_whether_it_leads() {
    kubernetes_python - "$TREE/contrib/kubernetes/leader.yaml" >sidecar <<'X'
import sys, yaml
with open(sys.argv[1], encoding="utf-8") as file:
    api = [r for r in yaml.safe_load_all(file) if r["kind"] == "Deployment" and r["metadata"]["name"] == "api"][0]
print(api["spec"]["template"]["spec"]["containers"][0]["command"][2].replace("/lead/", "lead/"))
X
    mkdir lead
    holdfast lock -q leader/api --ttl 1m >ticket
    setsid sh sidecar &
    eventually waits leader/api
    [ ! -e lead/lead ]
    holdfast unlock leader/api --ticket "$(cat ticket)"
    eventually exists_now lead/lead
    grep -Eqx '[0-9]+' lead/lead
    kill -TERM "-$!"
    eventually not exists_now lead/lead
    eventually is_free leader/api
}

. "$(dirname "$0")/harness.sh"
