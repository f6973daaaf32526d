#!/usr/bin/env bash
# Builds and tests Perennial with the libraries of Debian 13, in a Debian 13 of its own below .build/trixie: `make test-trixie`.
#
# Needs root, debootstrap, and a Swift toolchain in a folder of its own, such as /opt/swift. TARGET=soak runs another target of the
# Makefile. With KAFKA_HOME the tests on a real Kafka run as well.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly folder=$PWD/.build/trixie
readonly system=$folder/system mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

fail() {
    printf 'trixie: %s\n' "$1" >&2
    exit 1
}

# Runs in a mount namespace and a process namespace of its own: when it ends, nothing of it is left mounted or running.
inside() {
    mkdir -p "$folder"/build{,/fuzz,/benchmarks} Tests/{Fuzz,Benchmarks}/.build "$system"/{source,kafka,opt/swift}
    mount --bind "$1" "$system/opt/swift"
    mount --bind "$PWD" "$system/source"
    # Objects of another Debian do not fit.
    mount --bind "$folder/build" "$system/source/.build"
    mount --bind "$folder/build/fuzz" "$system/source/Tests/Fuzz/.build"
    mount --bind "$folder/build/benchmarks" "$system/source/Tests/Benchmarks/.build"
    if [ -n "${KAFKA_HOME:-}" ]; then mount --bind "$KAFKA_HOME" "$system/kafka"; fi
    mount -t proc proc "$system/proc"
    # A test needs a folder that not even root can write to.
    mount -t sysfs -o ro sysfs "$system/sys"
    mount --rbind /dev "$system/dev"
    cp /etc/resolv.conf "$system/etc/resolv.conf"
    local java=
    if [ -n "${KAFKA_HOME:-}" ]; then java=openjdk-21-jre-headless; fi
    # shellcheck disable=SC2016 # the shell inside expands these
    chroot "$system" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/opt/swift/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        JAVA="$java" ${KAFKA_HOME:+KAFKA_HOME=/kafka} bash -euo pipefail -c '
            cd /source
            deploy/install.sh toolchain
            if [ -n "$JAVA" ]; then apt-get -q -y install --no-install-recommends "$JAVA"; fi
            make setup
            # The repository belongs to whoever has cloned it.
            git config --global --replace-all safe.directory /source
            make "$1"' trixie "${TARGET:-test}"
}

if [ "${1:-}" = --inside ]; then
    inside "$2"
    exit
fi

[ "$(id -u)" = 0 ] || fail "it needs root for a chroot: sudo -E make test-trixie"
for tool in debootstrap unshare swift; do
    command -v "$tool" >/dev/null || fail "$tool is missing: make setup installs debootstrap; swift must be on the PATH"
done
program=$(realpath "$(command -v swift)")
toolchain=${program%/usr/bin/*}
if [ -z "$toolchain" ] || [ "$toolchain" = "$program" ]; then
    fail "the Swift toolchain is in /usr, among other programs: unpack one from swift.org in a folder of its own, such as /opt/swift"
fi
if [ ! -e "$folder/complete" ]; then
    echo "trixie: installing Debian 13 into $system" >&2
    rm -rf "$system"
    mkdir -p "$folder"
    debootstrap --variant=minbase trixie "$system" "$mirror" >"$folder/debootstrap.log" 2>&1 ||
        fail "debootstrap failed, see $folder/debootstrap.log"
    touch "$folder/complete"
fi
exec unshare --mount --propagation private --pid --fork --kill-child "$0" --inside "$toolchain"
