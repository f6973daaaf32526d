#!/usr/bin/env bash
# Installs other people's libraries, which tests ask for a second opinion, into .build/interop. Never fails: without them,
# those tests are skipped, and this says why.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly folder=.build/interop
readonly wanted=Tests/Interop/requirements.txt
readonly installed=$folder/requirements.txt
readonly log=$folder.log

skip() {
    printf 'interop: %s; the tests with other libraries will be skipped\n' "$1" >&2
    exit 0
}

# The copy is written last: an installation that was interrupted is begun again.
if cmp -s "$wanted" "$installed"; then exit 0; fi
command -v python3 >/dev/null || skip "there is no python3"
mkdir -p .build
rm -rf "$folder"
echo "interop: installing $wanted into $folder" >&2
python3 -m venv "$folder" >"$log" 2>&1 || skip "python3 makes no virtual environment (Debian: apt-get install python3-venv; see $log)"
# Ready-made packages only: building one would want compilers for C and Rust.
"$folder/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --no-deps --timeout 20 --retries 2 \
    --requirement "$wanted" >>"$log" 2>&1 || skip "pip could not install them (see $log)"
cp "$wanted" "$installed"
