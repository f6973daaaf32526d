#!/usr/bin/env bash
# Runs the simulation of workers: 300 seeds, or SEEDS of them, or only SEED, with its trace: `make simulate`.
#
# It is built with optimisation, in a folder of its own: a seed takes a fraction of the time that it takes in the tests' build.
set -euo pipefail
cd "$(dirname "$0")/.."

export PERENNIAL_TESTS=RuntimeTests
build=(--scratch-path .build/simulate -c release -Xswiftc -enable-testing)
swift build "${build[@]}" --product perennialPackageTests
if [ -n "${SEED:-}" ]; then
    export PERENNIAL_TEST_SEED=$SEED
else
    export PERENNIAL_TEST_SEEDS=${SEEDS:-300}
fi
SECONDS=0
swift test "${build[@]}" --skip-build --filter '^RuntimeTests\..*write what a plain fold of their input says'
echo "simulate: $([ -n "${SEED:-}" ] && echo "seed $SEED" || echo "${SEEDS:-300} seeds"), $SECONDS s"
