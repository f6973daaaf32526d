#!/usr/bin/env bash
# Runs the test of a fleet in namespaces of its own: `make fleet`.
#
# fleet.sh check SECONDS RATE   tells what is missing, before anything is built
# fleet.sh SECONDS RATE         runs the test that is built
#
# Every host of the fleet has a network namespace, and its small disks are mounts. When this script ends, however that happens,
# nothing of them is left; only when it is killed with KILL, its directory below TMPDIR stays. It needs no root where the kernel gives
# user namespaces to everybody, as Debian does: so everything that it makes belongs to the user.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    printf 'fleet: %s\n' "$1" >&2
    exit 2
}

# The first process of its namespaces. `ip netns` keeps its names below /run.
if [ "${1:-}" = --inside ]; then
    mount -t tmpfs tmpfs /run
    mkdir /run/netns
    PERENNIAL_TEST_FLEET_SECONDS=$2 PERENNIAL_TEST_FLEET_RATE=$3 PERENNIAL_TEST_PROGRAM=$PWD/.build/release/perennial \
        swift test --skip-build --no-parallel --filter '^BrokerTests\..*A fleet on a network that fails'
    exit
fi

checks=
if [ "${1:-}" = check ]; then
    checks=yes
    shift
fi
[[ $# = 2 && $1 =~ ^[0-9]+$ && $2 =~ ^[0-9]+$ ]] || fail "usage: Tests/fleet.sh [check] SECONDS RATE"
# /usr/sbin may be missing from the PATH of a user.
PATH=$PATH:/usr/sbin:/sbin

[ -n "${KAFKA_HOME:-}" ] || fail "set KAFKA_HOME to an unpacked Kafka 3.9 or later"
if [ "$(id -u)" = 0 ] && [ -n "${SUDO_USER:-}" ]; then fail "run it without sudo: it needs no root, and root would own what it builds"; fi
namespaces=(--mount --net --pid --fork --kill-child --mount-proc)
if [ "$(id -u)" != 0 ]; then namespaces=(--user --map-root-user "${namespaces[@]}"); fi
unshare "${namespaces[@]}" true ||
    fail "this machine gives a user no namespaces of its own: allow them (sysctl kernel.unprivileged_userns_clone=1), or be root"
if [ -n "$checks" ]; then exit; fi

TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/perennial-fleet.XXXXXX") || exit 1
export PATH TMPDIR
# `unshare` blocks TERM while it waits, and takes everything with it when it is killed.
child=
end() {
    if [ -n "$child" ]; then
        kill -KILL "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    rm -rf "$TMPDIR"
}
trap end EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
# When this script is killed, the system kills `unshare`.
setpriv --pdeathsig KILL unshare "${namespaces[@]}" "$0" --inside "$1" "$2" &
child=$!
code=0
wait "$child" || code=$?
child=
exit "$code"
