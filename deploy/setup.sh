#!/usr/bin/env bash
# Makes a Debian machine ready to build and test: `make setup`. Silent when nothing is missing; never asks.
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
        fail "no swift on the PATH: install Swift $needed_swift or newer from https://www.swift.org/install/linux/"
    local words version
    words=$(swift --version 2>&1) || fail "swift --version fails:" "$words"
    version=$(sed -nE 's/.*Swift version ([0-9]+(\.[0-9]+)*).*/\1/p' <<<"$words" | head -n 1)
    [ -n "$version" ] || fail "swift --version does not tell its version:" "$words"
    [ "$(printf '%s\n' "$needed_swift" "$version" | sort -V | head -n 1)" = "$needed_swift" ] ||
        fail "Swift $version is too old: install $needed_swift or newer from https://www.swift.org/install/linux/"
}

wanted_packages() {
    sed -E 's/#.*//; s/[[:space:]]+$//; /^$/d' "$list"
    # Kafka brings its scripts, not its Java.
    if [ -n "${KAFKA_HOME:-}" ] && ! command -v java >/dev/null; then echo openjdk-17-jre-headless; fi
}

missing_packages() {
    local package
    for package in $(wanted_packages); do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done
}

# Debian starts a service when its package is installed. Nobody asked for a Prometheus server here: while packages are
# installed no service may start, and the new one is not started at boot either.
install_as_root() {
    export DEBIAN_FRONTEND=noninteractive
    echo "setup: installing $*" >&2
    if [ ! -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    # Five minutes for another apt to finish, on a machine that updates itself just now.
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

check_swift
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    pkg-config --exists rdkafka rocksdb libmicrohttpd openssl simdjson 2>/dev/null && exit 0
    fail "this system has no apt-get. Install by its own means what $list names:" \
        "librdkafka, RocksDB, libmicrohttpd, OpenSSL and simdjson with their headers, pkg-config, openssl, curl, promtool."
fi

mapfile -t missing < <(missing_packages)
[ "${#missing[@]}" -gt 0 ] || exit 0
if [ "$(id -u)" = 0 ]; then
    install_as_root "${missing[@]}"
elif sudo -n true 2>/dev/null; then
    sudo -n "$PWD/deploy/setup.sh" --as-root "${missing[@]}"
else
    fail "this needs root, and sudo is not there or asks for a password. Run this as root, once:" \
        "$PWD/deploy/setup.sh --as-root ${missing[*]}"
fi
