#!/usr/bin/env bash
# Runs the built tests, and prints at the end which ones failed.
set -uo pipefail
cd "$(dirname "$0")/.."

# Tests that only compute keep every thread of the pool busy for a minute. That would delay tests that wait for something, so the
# computing ones run first and alone.
computing='ContractTests|ZoneTests|LogTests|JSONTests|CryptoTests|AppStoreTests|RecordsTests|EntitlementsTests|EntitlementsWorkerTests|ChurnTests|ChurnWorkerTests|SimulationTests|HouseTests'
# Suites that check limits of a few seconds on the wall clock: they run one test at a time, with nothing else beside them.
# HouseTests finds suites that are missing here.
quiet='A pace|A service|A tool that does not reach Kafka|A worker as part of a process|An HTTP server under abuse|Stopping an HTTP server|The demo'
log=$(mktemp "${TMPDIR:-/tmp}/perennial-tests.XXXXXX") || exit 1
trap 'rm -f "$log"' EXIT

# All other tests at once would start hundreds of processes and threads. Each of them would get so little CPU that limits of the
# product itself, such as ten seconds for a cluster to answer, would pass before anything has happened.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=$((4 * $(nproc)))

run() {
    swift test --skip-build "$@" 2>&1 | tee "$log" && return
    printf '\nmake test: these tests failed:\n'
    grep -E '^✘|error:' "$log" | cut -c 1-400 | tail -n 40
    exit 1
}

run --filter "^($computing)\."
# A few hundred simulated runs, and services that depend on the clock: separate, so that they do not delay other tests.
run --filter '^RuntimeTests\.' --skip "\.\`($quiet)\`/"
run --skip "^($computing|RuntimeTests|BrokerTests)\." --skip "\.\`($quiet)\`/"
run --filter "\.\`($quiet)\`/" --no-parallel
# These tests measure time, so they run alone, one after the other. Without a Kafka each is skipped and says so.
run --filter '^BrokerTests\.' --no-parallel
[ -n "${KAFKA_HOME:-}${KAFKA_BOOTSTRAP_SERVERS:-}" ] || echo "make test: the tests on a real Kafka were skipped; \
set KAFKA_HOME to an unpacked Kafka 3.9 or later (needs Java 17), or KAFKA_BOOTSTRAP_SERVERS to a running one"
