#!/usr/bin/env bash
# Runs everything at full length: `make nightly`, or one part: `make nightly PART=bench`. GROUP="churn diff" chooses groups of mutants.
#
# Tests/nightly.md keeps the last result of each part. Commit it together with the code that it is about.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly table=Tests/nightly.md
readonly parts=(tests trixie soak simulation whole many fleet rolling deploy install mutants fuzz bench)
readonly logs=.build/nightly
# Five times the rounds of `make test`: a race that shows once in a few hundred kills is found within a few nights.
readonly kill_rounds=40

fail() {
    printf 'nightly: %s\n' "$@" >&2
    exit 2
}

# The figures of each part, from the output of its Makefile target.
passed_tests() { grep -cE '^([a-z]+: )?✔ Test ".*passed'; }
figures_of_tests() { printf '%d tests, %d kill rounds' "$(passed_tests)" "$kill_rounds"; }
figures_of_soak() { figures_of_tests; }
# Inside of the chroot there are as many kill rounds as in make test.
figures_of_trixie() { printf '%d tests' "$(passed_tests)"; }
figures_of_fuzz() { awk '/^fuzz: / { runs += $3 } END { printf "%d inputs", runs }'; }
figures_of_mutants() { tail -n 1; }
# The test prints "whole: 19000 subscriptions, ..." at its end.
figures_of_whole() { sed -n 's/^whole: //p'; }
# The same for "many: ". Lines about single disturbances come before the last one.
figures_of_many() { sed -n 's/^many: //p' | tail -n 1; }
figures_of_fleet() { sed -n 's/^fleet: //p' | tail -n 1; }
figures_of_rolling() { sed -n 's/^rolling: //p' | tail -n 1; }
# "runbooks: 200 commands of 40 pages, ..." and "alerts: 33 of 34 alerts, 134 queries".
figures_of_deploy() {
    awk -F ', ' '/^runbooks: / { sub(/runbooks: /, ""); runbooks = $1 } /^alerts: / { sub(/alerts: /, ""); alerts = $1 ", " $NF }
        END { print runbooks ", " alerts }'
}
# "install test: bookworm: passed after 300 s", a line for each system that is right.
figures_of_install() { awk -F ': ' '/^install test: .* passed after / { printf "%s%s %s", separator, $2, $3; separator = ", " }'; }
figures_of_simulation() { sed -n 's/^simulate: //p'; }
# "    ratio 0.93, at least 0.88: met" follows a line that begins with the name of the row and a colon.
figures_of_bench() {
    awk '$1 == "ratio" { gsub(/[,:]/, ""); figures = figures separator what " " $2 " of " $3 " " $4 " " $5; separator = ", " }
        /^  [a-z-]+: / { what = $1; sub(/:/, "", what) }
        END { print figures }'
}

# Replaces the row of this part, or adds it.
note() {
    local row="| $1 | $(date -u +%F) | $commit | $2 | $3 |"
    awk -F ' *[|] *' -v part="$1" -v row="$row" '$2 == part { print row; done = 1; next } { print } END { if (!done) print row }' \
        "$table" >"$logs/table"
    cat "$logs/table" >"$table"
}

for part in ${PART:-}; do
    [[ " ${parts[*]} " == *" $part "* ]] || fail "there is no part '$part'; the parts are: ${parts[*]}"
done
[ -n "${KAFKA_HOME:-}" ] || fail "make nightly needs a Kafka: set KAFKA_HOME to an unpacked Kafka 3.9 or later"

mkdir -p "$logs"
commit=$(git rev-parse --short HEAD)
# The table itself changes after every part, so it does not count as a change.
[ -z "$(git status --porcelain -- . ":!$table")" ] || commit+=" and changes"
if [ ! -f "$table" ]; then
    printf '%s\n' '# Last results at full length' '' \
        '`make nightly` writes this table, one row for each part. Dates are in UTC.' '' \
        '| Part | Date | Commit | Result | Figures |' '|---|---|---|---|---|' >"$table"
fi

export PERENNIAL_TEST_KILL_ROUNDS=$kill_rounds FUZZ_SECONDS=60 SEEDS=10000 MANY_SECONDS=1200 FLEET_SECONDS=1800 ROLLING_SECONDS=600 LANES="${LANES:-2}"
failed=0
# Runs a target of the Makefile. NAME of its row, PART whose figures it has, TARGET.
run() {
    printf '\n== %s\n' "$1"
    SECONDS=0
    if make --no-print-directory "$3" 2>&1 | tee "$logs/${1/\//-}.log"; then
        note "$1" passed "$("figures_of_$2" <"$logs/${1/\//-}.log"), $SECONDS s"
    else
        note "$1" FAILED "$("figures_of_$2" <"$logs/${1/\//-}.log"), $SECONDS s"
        failed=1
    fi
}

for part in ${PART:-${parts[@]}}; do
    case $part in
    # All of them take longer than an hour, so each group has a row of its own: GROUP="churn diff" runs two.
    mutants)
        for group in ${GROUP:-$(cd Tests/Mutants && printf '%s\n' */)}; do GROUP=${group%/} run "mutants/${group%/}" mutants mutants; done
        ;;
    tests) run tests tests test ;;
    trixie) run trixie trixie test-trixie ;;
    simulation) run simulation simulation simulate ;;
    deploy) run deploy deploy deploy-test ;;
    install) run install install install-test ;;
    *) run "$part" "$part" "$part" ;;
    esac
done
exit "$failed"
