#!/usr/bin/env bash
# Installs into .build/interop independent libraries that check our results in tests. It never fails: if it cannot install
# them, it says why, and those tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly folder=.build/interop
readonly wanted=Tests/Interop/requirements.txt
readonly installed=$folder/requirements.txt
readonly log=$folder.log

skip() {
    printf 'interop: %s; tests that need independent libraries will be skipped\n' "$1" >&2
    exit 0
}

# The copy is written last, so an interrupted installation starts again.
if cmp -s "$wanted" "$installed"; then exit 0; fi
command -v python3 >/dev/null || skip "there is no python3"
mkdir -p .build
rm -rf "$folder"
echo "interop: installing $wanted into $folder" >&2
python3 -m venv "$folder" >"$log" 2>&1 || skip "python3 cannot make a virtual environment (Debian: apt-get install python3-venv; see $log)"
# Only binary packages: building one from source would need compilers for C and Rust.
"$folder/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --no-deps --timeout 20 --retries 2 \
    --requirement "$wanted" >>"$log" 2>&1 || skip "pip could not install them (see $log)"
cp "$wanted" "$installed"
