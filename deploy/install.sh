#!/usr/bin/env bash
# The steps of deploy/Dockerfile, as root on Debian 12 or 13. deploy/tests/install.sh runs them in clean systems.
#
# install.sh toolchain      installs Swift in /opt/swift, unless it is there, and the packages that it needs
# install.sh build          builds the Debian package of this source: .build/deb/perennial_VERSION_ARCH.deb
# install.sh runtime DEB    installs that package, and nothing else that does not belong to it
set -euo pipefail

# The release that the tests run with. The toolchain for Debian 12 runs on Debian 13 as well.
readonly swift=6.3.1 folder=/opt/swift
# "Swift 6.x Release Signing Key", from https://www.swift.org/install/linux/tarball/
readonly signer=52BB7E3DE28A71BE22EC05FFEF80A866B47A981F
# No name of this user is needed outside of the container, only this number: Kubernetes wants one to see that it is not root.
readonly number=10001

fail() {
    printf 'install: %s\n' "$1" >&2
    exit 1
}

install_packages() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update
    apt-get -q -y install --no-install-recommends "$@"
}

toolchain() {
    # libncurses6, libsqlite3-0, libxml2 and libcurl4-openssl-dev: libraries of the Swift package manager and of the linker.
    install_packages binutils ca-certificates curl dpkg-dev git gnupg libc6-dev libcurl4-openssl-dev libncurses6 libsqlite3-0 \
        libxml2 make zlib1g-dev
    if [ -x "$folder/usr/bin/swift" ]; then
        echo "install: $folder is there: $("$folder/usr/bin/swift" --version 2>&1 | head -n 1)"
        return
    fi
    local platform=debian12 file work
    case $(dpkg --print-architecture) in
    amd64) ;;
    arm64) platform=debian12-aarch64 ;;
    *) fail "swift.org has no toolchain for $(dpkg --print-architecture)" ;;
    esac
    file=swift-$swift-RELEASE-$platform.tar.gz
    work=$(mktemp -d)
    curl --fail --silent --show-error --location --proto =https --output "$work/$file" --output "$work/$file.sig" \
        "https://download.swift.org/swift-$swift-release/$platform/swift-$swift-RELEASE/$file" \
        "https://download.swift.org/swift-$swift-release/$platform/swift-$swift-RELEASE/$file.sig"
    # The file of keys comes from the same place as the archive, so only the fingerprint above decides who has signed.
    curl --fail --silent --show-error --location --proto =https --compressed --output "$work/keys" https://www.swift.org/keys/all-keys.asc
    gpg --homedir "$work" --batch --quiet --import "$work/keys"
    gpg --homedir "$work" --batch --status-fd 1 --verify "$work/$file.sig" "$work/$file" >"$work/verdict"
    grep -q "^\[GNUPG:\] VALIDSIG .*$signer\$" "$work/verdict" || fail "$file is not signed by $signer"
    mkdir -p "$folder"
    tar -xzf "$work/$file" --directory "$folder" --strip-components=1
    rm -rf "$work"
    "$folder/usr/bin/swift" --version
}

build() {
    # make release installs the libraries of deploy/debian-packages.txt.
    PATH=$folder/usr/bin:$PATH make deb
}

runtime() {
    [ -f "${1:-}" ] || fail "usage: install.sh runtime DEB"
    groupadd --system --gid "$number" perennial
    useradd --system --uid "$number" --gid perennial --home-dir /var/lib/perennial --no-create-home --shell /usr/sbin/nologin perennial
    install_packages "$(realpath "$1")"
    # What apt has fetched is not needed any more.
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb
}

cd "$(dirname "$0")/.."
case ${1:-} in
toolchain | build) "$1" ;;
runtime) runtime "${2:-}" ;;
*) fail "usage: install.sh toolchain|build|runtime DEB" ;;
esac
