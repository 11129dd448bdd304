# shellcheck shell=sh
# Three machines on one cable each, so that a test can cut one off; sourced before fleet.sh, which begins anew
# inside. Machine N is a network namespace at 10.77.0.N; the command is at 10.77.0.254, and
#
#     ip link set serverN down           pulls the cable of machine N; up plugs it in again
#     nsenter -t PID -n ...              runs something on the machine whose namespace PID has
#
# All of it is inside a namespace that ends with the command. Needs no root where users may make namespaces.

# apart_enter COMMAND ARGUMENT...: runs itself once more, inside.
apart_enter() {
    [ -z "${HOLDFAST_TEST_APART:-}" ] || return 0
    if ! command -v ip >/dev/null 2>&1 || ! unshare -rn true 2>/dev/null; then
        echo "SKIPPED: network namespaces cannot be made here" >&2
        exit 77
    fi
    HOLDFAST_TEST_APART=1 exec unshare -rn "$@"
}

# apart_wire: three machines; sets apart_nets, process ids that have their namespaces.
apart_wire() {
    apart_nets=
    ip link set lo up && ip link add lan type bridge && ip addr add 10.77.0.254/24 dev lan &&
        ip link set lan up || fleet_skip "the machines cannot be wired"
    for i in 1 2 3; do
        unshare -n sleep 3600 &
        net=$!
        fleet_pids="$fleet_pids $net"
        fleet_until sh -c "[ \"\$(readlink /proc/$net/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ]"
        ip link add "server$i" type veth peer name inside netns "$net" &&
            ip link set "server$i" master lan up &&
            nsenter -t "$net" -n sh -c "ip link set lo up && ip addr add 10.77.0.$i/24 dev inside &&
                ip link set inside up" || fleet_skip "the machines cannot be wired"
        apart_nets=${apart_nets:+$apart_nets }$net
    done
}

# apart_net N: the process id of machine N.
apart_net() {
    echo "$apart_nets" | cut -d' ' -f"$1"
}
