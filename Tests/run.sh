#!/usr/bin/env bash
# Runs the built tests, and says at the end which have failed.
set -uo pipefail
cd "$(dirname "$0")/.."

# Tests that only compute keep every thread of the pool busy for a minute, which those that wait would have to bear: they run first.
computing='ContractTests|ZoneTests|LogTests|JSONTests|CryptoTests|AppStoreTests|RecordsTests|EntitlementsTests|EntitlementsWorkerTests|ChurnTests|ChurnWorkerTests|SimulationTests|HouseTests'
# Suites that promise to be done within seconds, as the clock on the wall counts them: they run one test at a time, beside nothing
# else. HouseTests finds those that are missing here.
quiet='A pace|A service|A tool that does not reach Kafka|A worker as part of a process|An HTTP server under abuse|Stopping an HTTP server|The demo'
log=$(mktemp "${TMPDIR:-/tmp}/perennial-tests.XXXXXX") || exit 1
trap 'rm -f "$log"' EXIT

# All others at once would start hundreds of processes and threads: each of them gets so little of the machine that limits of the
# product itself, such as ten seconds for a cluster to answer, pass before anything has happened.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=$((4 * $(nproc)))

run() {
    swift test --skip-build "$@" 2>&1 | tee "$log" && return
    printf '\nmake test: these have failed:\n'
    grep -E '^✘|error:' "$log" | cut -c 1-400 | tail -n 40
    exit 1
}

run --filter "^($computing)\."
# Some hundred simulated runs beside services that run by the clock: apart, so that neither keeps the others waiting.
run --filter '^RuntimeTests\.' --skip "\.\`($quiet)\`/"
run --skip "^($computing|RuntimeTests|BrokerTests)\." --skip "\.\`($quiet)\`/"
run --filter "\.\`($quiet)\`/" --no-parallel
# They measure time: they run alone, one after the other. Each says so when there is no Kafka and it is skipped.
run --filter '^BrokerTests\.' --no-parallel
[ -n "${KAFKA_HOME:-}${KAFKA_BOOTSTRAP_SERVERS:-}" ] || echo "make test: the tests on a real Kafka were skipped; \
set KAFKA_HOME to an unpacked Kafka 3.9 or later (needs Java 17), or KAFKA_BOOTSTRAP_SERVERS to a running one"
