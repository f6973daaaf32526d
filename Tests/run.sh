#!/usr/bin/env bash
# Runs the built tests, and says at the end which have failed.
set -uo pipefail
cd "$(dirname "$0")/.."

# Tests that only compute keep every thread of the pool busy for a minute, which those with deadlines would not survive beside
# them: they run first.
computing='ContractTests|LogTests|JSONTests|CryptoTests|AppStoreTests|RecordsTests|SimulationTests|HouseTests'
log=$(mktemp "${TMPDIR:-/tmp}/perennial-tests.XXXXXX")
trap 'rm -f "$log"' EXIT

run() {
    swift test --skip-build "$@" 2>&1 | tee "$log" && return
    printf '\nmake test: these have failed:\n'
    grep -E '^✘|error:' "$log" | cut -c 1-400 | tail -n 40
    exit 1
}

run --filter "^($computing)\."
# Some hundred simulated runs beside services that run by the clock: apart, so that neither keeps the others waiting.
run --filter '^RuntimeTests\.'
run --skip "^($computing|RuntimeTests|BrokerTests)\."
# They measure time: they run alone, one after the other. Each says so when there is no Kafka and it is skipped.
run --filter '^BrokerTests\.' --no-parallel
[ -n "${KAFKA_HOME:-}${KAFKA_BOOTSTRAP_SERVERS:-}" ] || echo "make test: the tests on a real Kafka were skipped; \
set KAFKA_HOME to an unpacked Kafka 3.9 or later (needs Java 17), or KAFKA_BOOTSTRAP_SERVERS to a running one"
