#!/usr/bin/env bash
# Applies the mutants of this folder one at a time: each removes or changes a guarding line, and the test that it names must then
# fail. Exits with an error if one does not: `make mutants`.
#
# GROUP=commit-path   only the mutants of this folder
# ONE=flush           only the mutant of this name
# SINCE=COMMIT        only the mutants whose source, or whose own file, has changed since this commit
# MOST=15             at most this many of these; each commit selects others
# LANES=2             that many copies, each with its share of the mutants, at the same time
# --check             only checks that the mutants still fit the sources
#
# A mutant is a file in the folder of its group:
#
#     why: what would go wrong without the line
#     file: Sources/Engine/Kafka/Consumer.swift
#     test: KafkaTests/the claim, as the test's name says it
#     needs: kafka                        (only if the test is skipped without a Kafka)
#     --- find                            (the lines below must stand in the file exactly once, indentation included)
#     --- replace                         (may be empty)
#
# All work happens in a copy of the tree that keeps its build folder: the checkout is not touched and may change meanwhile, and
# each mutant needs only an incremental build.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly copy="${MUTANTS_COPY:-$PWD/.build/mutants}"
# Seconds after which a test that hangs on a mutant is stopped. The slowest test takes a minute on a busy machine.
readonly limit=300
# Searching bytes is much faster, and works the same on every machine.
LC_ALL=C

fail() {
    printf 'mutants: %s\n' "$@" >&2
    exit 1
}

field() { sed -n "s/^$2: //p" "$1" | head -n 1; }

# Sets find and replacement: whole lines, each with the line break before it.
read_mutant() {
    local text
    text=$(<"$1")
    [[ $text == *$'\n--- find\n'*$'\n--- replace'* ]] || fail "$1 has no '--- find' and '--- replace'"
    find=${text#*$'\n--- find\n'}
    replacement=${find#*$'\n--- replace'}
    replacement=${replacement#$'\n'}
    find=$'\n'${find%%$'\n--- replace'*}$'\n'
    replacement=$'\n'${replacement:+$replacement$'\n'}
}

check() {
    local source rest
    for key in why file test; do
        [ -n "$(field "$1" $key)" ] || fail "$1 has no line '$key: ...'"
    done
    [ -f "$(field "$1" file)" ] || fail "the list is out of date: $1 names a file that does not exist: $(field "$1" file)"
    read_mutant "$1"
    source=$'\n'$(<"$(field "$1" file)")$'\n'
    [[ $source == *"$find"* ]] || fail "the list is out of date: the lines of $1 are not in $(field "$1" file)"
    rest=${source/"$find"/$'\n'}
    [[ $rest != *"$find"* ]] || fail "the list is out of date: the lines of $1 stand more than once in $(field "$1" file)"
}

# Prints the tests of these mutants as --filter options. A filter is a regular expression, a test's name is not.
filters() {
    local mutant test
    for mutant in "$@"; do
        test=$(field "$mutant" test)
        printf '%s\0' --filter "^${test%%/*}\\..*/\`$(sed 's/[][\.*^$()+?{}|]/\\&/g' <<<"${test#*/}")\`\\("
    done
}

# Runs the tests of these mutants and writes their output to $log.
run_tests() {
    local options
    mapfile -d '' options < <(filters "$@")
    timeout -k 10 "$((limit * $#))" swift test --skip-build --no-parallel "${options[@]}" >"$log" 2>&1
}

says() { grep -qF "$1 Test \"$(field "$2" test | cut -d/ -f2-)\"" "$log"; }

# Builds only the tests of the chosen mutants and what these depend on.
build() { swift build -j 2 --product perennialPackageTests >"$log" 2>&1; }

# A test preloads this library into processes, so no test depends on it.
build_preloaded() { swift build -j 2 --product ClockShift >"$log" 2>&1; }

# Sets verdict.
try_mutant() {
    local file source
    file=$(field "$1" file)
    read_mutant "$1"
    source=$'\n'$(<"$file")$'\n'
    source=${source/"$find"/"$replacement"}
    cp "$file" original
    printf '%s' "${source:1}" >"$file"
    if ! build; then
        verdict="DOES NOT BUILD"
    elif run_tests "$1"; then
        verdict=SURVIVED
    elif says ✘ "$1"; then
        verdict=killed
    else
        # After a crash or a hang no expectation has failed, so nothing shows that this test guards the line.
        verdict="ENDED OTHERWISE"
    fi
    cat original >"$file"
}

mapfile -t mutants < <(find Tests/Mutants -path "*/${GROUP:-*}/${ONE:-*}.mutant" | sort)
[ "${#mutants[@]}" -gt 0 ] || fail "there is no mutant '${ONE:-}' in group '${GROUP:-any}'; the mutants are:" $(cd Tests/Mutants && find . -name '*.mutant' | sort)
for mutant in "${mutants[@]}"; do check "$mutant"; done
if [ "${1:-}" = --check ]; then exit 0; fi

if [ -n "${SINCE:-}" ]; then
    changed=$(git diff --name-only "$SINCE") || fail "SINCE is '$SINCE', which is not a commit"
    touched=()
    for mutant in "${mutants[@]}"; do
        if grep -qxF -e "$mutant" -e "$(field "$mutant" file)" <<<"$changed"; then touched+=("$mutant"); fi
    done
    mutants=(${touched[@]+"${touched[@]}"})
    if [ "${#mutants[@]}" = 0 ]; then
        echo "0 of 0 killed: nothing that a mutant changes has changed since $SINCE"
        exit 0
    fi
fi
if [ -n "${MOST:-}" ]; then
    # The commit decides which, so every mutant is selected some time.
    mapfile -t mutants < <(printf '%s\n' "${mutants[@]}" | shuf --random-source=<(yes "$(git rev-parse HEAD)") -n "$MOST" | sort)
fi

chosen=()
for mutant in "${mutants[@]}"; do
    if [ "$(field "$mutant" needs)" = kafka ] && [ -z "${KAFKA_HOME:-}${KAFKA_BOOTSTRAP_SERVERS:-}" ]; then continue; fi
    chosen+=("$mutant")
done
skipped=$((${#mutants[@]} - ${#chosen[@]}))
[ "${#chosen[@]}" -gt 0 ] || fail "all $skipped mutants need a Kafka: set KAFKA_HOME to an unpacked Kafka 3.9 or later"

if [ "${LANES:-1}" -gt 1 ]; then
    outcomes=$(mktemp -d "${TMPDIR:-/tmp}/perennial-mutants.XXXXXX") || exit 1
    trap 'rm -rf "$outcomes"' EXIT
    lanes=()
    for lane in $(seq "$LANES"); do
        # LANE stands before LANES: bash reads each of them with those before it in force.
        { LANE=$lane/$LANES LANES='' MUTANTS_COPY=$copy-$lane Tests/Mutants/run.sh | tee "$outcomes/$lane"; } &
        lanes+=($!)
    done
    failed=0
    for lane in "${lanes[@]}"; do wait "$lane" || failed=1; done
    # The last line of each lane. A lane that broke off has none, so its mutants are missing in the sum.
    cat "$outcomes"/* | awk -v all="${#chosen[@]}" '/^[0-9]+ of [0-9]+ killed/ { sum += $1; tried += $3 }
        END { printf "%d of %d killed\n", sum, all; exit tried != all }' || failed=1
    exit "$failed"
fi
if [ -n "${LANE:-}" ]; then
    # Every second one, every third one: mutants of one module are distributed over all lanes.
    mapfile -t chosen < <(printf '%s\n' "${chosen[@]}" | awk -v lane="${LANE%/*}" -v lanes="${LANE#*/}" 'NR % lanes == lane % lanes')
    if [ "${#chosen[@]}" = 0 ]; then exit; fi
fi

PERENNIAL_TESTS=$(for mutant in "${chosen[@]}"; do field "$mutant" test | cut -d/ -f1; done | sort -u | paste -sd,)
export PERENNIAL_TESTS

mkdir -p "$copy/Tests"
log=$copy/log
rm -rf "$copy/"{Package.swift,Sources,Tests}
cp -a Package.swift Sources Tests "$copy/"
rm -rf "$copy/Tests/Benchmarks" "$copy/Tests/Fuzz"
cd "$copy"
echo "mutants: building the copy and running the tests without any mutant" >&2
build && build_preloaded || { cat "$log" >&2; fail "the copy does not build"; }
run_tests "${chosen[@]}" || { grep -aE '✘|error:' "$log" >&2; fail "a test fails without any mutant, see $log"; }
for mutant in "${chosen[@]}"; do
    says ✔ "$mutant" || fail "the list is out of date: $mutant names the test '$(field "$mutant" test)', which did not run and pass"
done

killed=0
for mutant in "${chosen[@]}"; do
    SECONDS=0
    try_mutant "$mutant"
    name=${mutant#Tests/Mutants/}
    printf '%-15s %3d s  %-42s %s\n' "$verdict" "$SECONDS" "${name%.mutant}" "$(field "$mutant" test)"
    if [ "$verdict" = killed ]; then killed=$((killed + 1)); else cp "$log" "$copy/$(basename "$mutant").log"; fi
done
[ "$skipped" = 0 ] || echo "$skipped mutants skipped because they need a Kafka; set KAFKA_HOME to an unpacked Kafka 3.9 or later"
echo "$killed of ${#chosen[@]} killed"
[ "$killed" = "${#chosen[@]}" ] || fail "no test guards the line of a mutant that is not killed; logs are in $copy"
