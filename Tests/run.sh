#!/usr/bin/env bash
# Runs the built tests of one tier, and prints at the end which tests failed and which were the slowest.
#
# run.sh test   what every change needs
# run.sh soak   the long runs on a real broker, and the simulation with 300 seeds
#
# A group of tests that fails does not stop the other groups.
set -uo pipefail
cd "$(dirname "$0")/.."

# Tests that only compute keep every thread of the pool busy for a minute. That would delay tests that wait for something, so the
# computing ones run first and alone.
computing='ContractTests|ZoneTests|LogTests|JSONTests|CryptoTests|AppStoreTests|RecordsTests|EntitlementsTests|EntitlementsWorkerTests|ChurnTests|ChurnWorkerTests|SimulationTests|SizingTests|HouseTests'
# Suites that check limits of a few seconds on the wall clock: they run one test at a time. Only the demo's tests, which wait most of
# the time, run beside the others. HouseTests finds suites that are missing here.
quiet='A pace|A service|A tool that does not reach Kafka|A worker as part of a process|An HTTP server under abuse|Stopping an HTTP server|The demo'
# Suites of BrokerTests in the tier `test`: a few seconds each, conformance to a real Kafka, the program against Kafka's own tools, and
# one run with kills. All other suites of BrokerTests are in the tier `soak`.
quick='A follower|A gap in the notifications|A partition that has a new leader|An ingest whose broker is gone|Dead letters of a worker|Entitlements of a whole installation|Inspect|Kafka as a log|Members of a group|Offsets|The Kafka log|The judge of a flood|The judges of a fleet|The log of ingest|The memory of a worker|The program on Kafka|The tutorial of the first run|Topics and groups|Transactions|perennial usage put on Kafka'

# The suites of the tier `soak` wait most of the time: for sessions to end, brokers to start, retries to come. So three groups of them
# run at the same time: these two, and all others. Each takes about as long as the others.
first='A comparison with a replay|A replay|Answers to refund requests|Answers to refund requests in trouble|Dead letters|The read API|Without a right or a broker|Workers'
second='A broker that dies|A promotion|A state that another build has kept|A worker of the runtime|Churn of a whole installation|The page about changing rules'
# These measure the processor time of each request, how long answers take, or send as much as the machine can. They run alone, when the
# others have ended.
measuring='An ingest that is asked for too much|An ingest under a flood'

tier=${1:-}
logs=$(mktemp -d "${TMPDIR:-/tmp}/perennial-tests.XXXXXX") || exit 1
trap 'rm -rf "$logs"' EXIT

# All tests at once would start hundreds of processes and threads. Each of them would get so little CPU that limits of the product
# itself, such as ten seconds for a cluster to answer, would pass before anything has happened.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=$((4 * $(nproc)))

group() {
    local name=$1
    shift
    printf '\n-- %s\n' "$name"
    swift test --skip-build "$@" 2>&1 | tee "$logs/$name" | sed -u "s/^/${line_start:-}/" || touch "$logs/$name.failed"
}

beside=()
# A group that runs at the same time as others, and shares the build folder with them: they only read it. Each line of its output
# begins with its name.
group_beside() {
    local name=$1
    # It gets a process group of its own.
    set -m
    line_start="${name#*-}: " group "$@" --ignore-lock &
    set +m
    beside+=("$name:$!")
}

# A group that was killed has not said how it ended.
wait_for_all() {
    local one
    for one in "${beside[@]}"; do
        wait "${one##*:}" || touch "$logs/${one%:*}.failed"
    done
    beside=()
}

# Ctrl-C does not reach the process groups of others.
stop_all() {
    local one
    for one in "${beside[@]}"; do kill -- "-${one##*:}"; done
    exit 130
}
trap stop_all INT TERM

# A pattern for `swift test` of suites of BrokerTests.
suites() { printf '^BrokerTests(\..*)?[./]`?(%s)`?/' "$1"; }

case $tier in
test)
    group computing --filter "^($computing)\."
    # Simulated runs, and services that depend on the clock: separate, so that they do not delay other tests.
    group runtime --filter '^RuntimeTests\.' --skip "\.\`($quiet)\`/"
    group others --skip "^($computing|RuntimeTests|BrokerTests)\." --skip "\.\`($quiet)\`/"
    group_beside quiet-demo --no-parallel --filter "\.\`The demo\`/"
    group_beside quiet-others --no-parallel --filter "\.\`($quiet)\`/" --skip "\.\`The demo\`/"
    wait_for_all
    # These tests measure time, so they run alone, one after the other. Without a Kafka each is skipped and says so.
    group broker --no-parallel --filter "$(suites "$quick")"
    ;;
soak)
    # With 300 seeds or more the test also requires that every kind of fault has occurred.
    PERENNIAL_TEST_SEEDS=${PERENNIAL_TEST_SEEDS:-300} \
        group simulation --filter '^RuntimeTests\..*write what a plain fold of their input says'
    group_beside soak-first --no-parallel --filter "$(suites "$first")"
    group_beside soak-second --no-parallel --filter "$(suites "$second")"
    group_beside soak-others --no-parallel --filter '^BrokerTests\.' --skip "$(suites "$first|$second|$measuring|$quick")"
    wait_for_all
    group soak-measuring --no-parallel --filter "$(suites "$measuring")"
    ;;
*)
    echo "usage: Tests/run.sh test|soak" >&2
    exit 2
    ;;
esac

# Where the tests of a group run in parallel, the time of each contains its wait for the others: these groups are left out.
printf '\nmake %s: the slowest tests of the groups that run one test at a time, in seconds\n' "$tier"
sed -nE 's/^[✔✘] Test "([^"]+)".* (passed|failed) after ([0-9.]+) seconds.*/\3 \1/p' "$logs"/{quiet-*,broker,soak-*} 2>/dev/null | sort -rn | head -n 20
[ -n "${KAFKA_HOME:-}${KAFKA_BOOTSTRAP_SERVERS:-}" ] || echo "make $tier: the tests on a real Kafka were skipped; \
set KAFKA_HOME to an unpacked Kafka 3.9 or later (needs Java 17), or KAFKA_BOOTSTRAP_SERVERS to a running one"
cd "$logs" || exit 1
failed=(*.failed)
[ "${failed[*]}" = '*.failed' ] && exit
for name in "${failed[@]%.failed}"; do
    printf '\nmake %s: these tests failed in the group %s:\n' "$tier" "$name"
    grep -aE '^✘|error:' "$name" | cut -c 1-400 | tail -n 40
done
exit 1
