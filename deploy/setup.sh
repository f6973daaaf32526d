#!/usr/bin/env bash
# Makes a Debian machine ready. It prints nothing when nothing is missing, and asks no questions.
#
# setup.sh            to build and test: `make setup`
# setup.sh product    to build the product: without the packages whose reason begins with "tests:"
# setup.sh needs [product]   only prints the packages that this needs
set -euo pipefail
cd "$(dirname "$0")/.."

# The first toolchain whose compiler accepts every feature that Package.swift switches on.
readonly needed_swift=6.3
readonly list=deploy/debian-packages.txt
readonly policy=/usr/sbin/policy-rc.d

fail() {
    printf 'setup: %s\n' "$1" >&2
    shift
    if [ $# -gt 0 ]; then printf '%s\n' "$@" >&2; fi
    exit 1
}

check_swift() {
    command -v swift >/dev/null ||
        fail "there is no swift on the PATH: install Swift $needed_swift or newer from https://www.swift.org/install/linux/"
    local words version
    words=$(swift --version 2>&1) || fail "swift --version failed:" "$words"
    version=$(sed -nE 's/.*Swift version ([0-9]+(\.[0-9]+)*).*/\1/p' <<<"$words" | head -n 1)
    [ -n "$version" ] || fail "swift --version printed no version:" "$words"
    [ "$(printf '%s\n' "$needed_swift" "$version" | sort -V | head -n 1)" = "$needed_swift" ] ||
        fail "Swift $version is too old: install $needed_swift or newer from https://www.swift.org/install/linux/"
}

wanted_packages() {
    if [ "$part" = product ]; then
        sed -E '/#[[:space:]]*tests:/d; s/#.*//; s/[[:space:]]+$//; /^$/d' "$list"
        return
    fi
    sed -E 's/#.*//; s/[[:space:]]+$//; /^$/d' "$list"
    # An unpacked Kafka has no Java of its own.
    if [ -n "${KAFKA_HOME:-}" ] && ! command -v java >/dev/null; then echo openjdk-17-jre-headless; fi
}

missing_packages() {
    local package
    for package in $(wanted_packages); do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done
}

# Debian starts a service when its package is installed. The tests need promtool, not a running Prometheus server: no service
# may start while packages are installed, and Prometheus does not start at boot either.
install_as_root() {
    export DEBIAN_FRONTEND=noninteractive
    echo "setup: installing $*" >&2
    if [ ! -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    # Waits up to five minutes for another apt, in case the machine is updating itself.
    local apt=(apt-get -q -y -o DPkg::Lock::Timeout=300)
    "${apt[@]}" update
    "${apt[@]}" install --no-install-recommends "$@"
    if [[ " $* " == *" prometheus "* ]]; then update-rc.d prometheus disable; fi
}

if [ "${1:-}" = --as-root ]; then
    shift
    install_as_root "$@"
    exit
fi

needs=
if [ "${1:-}" = needs ]; then
    needs=yes
    shift
fi
readonly needs part=${1:-}
[[ $# -le 1 && $part =~ ^(product)?$ ]] || fail "usage: setup.sh [needs] [product]"
if [ -n "$needs" ]; then
    wanted_packages
    exit
fi

check_swift
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    pkg-config --exists rdkafka rocksdb libmicrohttpd openssl simdjson jemalloc 2>/dev/null && exit 0
    fail "this system has no apt-get. Install the packages of $list with the system's own package manager:" \
        "librdkafka, RocksDB, libmicrohttpd, OpenSSL, simdjson and jemalloc with their headers, pkg-config, openssl, curl, promtool."
fi

mapfile -t missing < <(missing_packages)
[ "${#missing[@]}" -gt 0 ] || exit 0
if [ "$(id -u)" = 0 ]; then
    install_as_root "${missing[@]}"
elif sudo -n true 2>/dev/null; then
    sudo -n "$PWD/deploy/setup.sh" --as-root "${missing[@]}"
else
    fail "installing packages needs root, and sudo is missing or asks for a password. Run this once as root:" \
        "$PWD/deploy/setup.sh --as-root ${missing[*]}"
fi
