#!/usr/bin/env bash
# Checks the files of deploy/: `make deploy-check`. It needs no root and no Docker, and takes some seconds after the first time, when it
# fetches kustomize from Debian and the libraries of deploy/tests/requirements.txt from PyPI into .build/deploy.
#
# What it cannot check, deploy/tests/install.sh does: that the files do what they say.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly folder=.build/deploy
readonly python=$folder/python wanted=deploy/tests/requirements.txt

fail() {
    printf 'check: %s\n' "$1" >&2
    exit 1
}

for tool in shellcheck systemd-analyze promtool python3 apt-get dpkg-deb; do
    command -v "$tool" >/dev/null || fail "$tool is missing: make setup installs the packages of deploy/debian-packages.txt"
done
mkdir -p "$folder"

# The copy is written last, so an interrupted installation starts again.
if ! cmp -s "$wanted" "$python/requirements.txt"; then
    echo "check: installing $wanted into $python" >&2
    rm -rf "$python"
    python3 -m venv "$python"
    "$python/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --no-deps --require-hashes --requirement "$wanted"
    cp "$wanted" "$python/requirements.txt"
fi

# Debian 12 has no kustomize that knows today's files; that of Debian 13 runs here as well. apt checks its signature, in folders of its
# own, and installs nothing.
kustomize=$folder/kustomize/usr/bin/kustomize
if [ ! -x "$kustomize" ]; then
    echo "check: fetching kustomize from Debian 13" >&2
    apt=$PWD/$folder/apt
    rm -rf "$apt" "$folder/kustomize"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$apt/sources.list"
    cat >"$apt/apt.conf" <<END
Dir::State::Lists "$apt/lists";
Dir::Cache "$apt/cache";
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Acquire::Languages "none";
APT::Sandbox::User "";
END
    (cd "$apt" && APT_CONFIG=$apt/apt.conf apt-get -qq update && APT_CONFIG=$apt/apt.conf apt-get -qq download kustomize)
    dpkg-deb -x "$apt"/kustomize_*.deb "$folder/kustomize"
    rm -rf "$apt"
fi

mapfile -t scripts < <(git ls-files -co --exclude-standard 'deploy/*.sh')
shellcheck "${scripts[@]}" deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm
perl -c deploy/debian/probe 2>/dev/null || perl -c deploy/debian/probe
deploy/tests/postinst.sh
"$python/bin/python" deploy/tests/check.py "$kustomize"
deploy/prometheus/check.sh >/dev/null
"$python/bin/python" deploy/grafana/check.py
