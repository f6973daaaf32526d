#!/usr/bin/env bash
# Everything at full length: `make nightly`, or one part of it: `make nightly PART=bench`.
#
# The last result of each part is kept in Tests/nightly.md, which is to be committed with what it judges.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly table=Tests/nightly.md
readonly parts=(tests soak simulation whole many mutants fuzz bench)
readonly logs=.build/nightly
# Five times the ordinary run: a race that shows once in some hundred kills is found within a few nights.
readonly kill_rounds=40

fail() {
    printf 'nightly: %s\n' "$@" >&2
    exit 2
}

# The figures of each part, from what its target of the Makefile said.
figures_of_tests() { printf '%d tests, %d kill rounds' "$(grep -cE '^✔ Test ".*passed')" "$kill_rounds"; }
figures_of_soak() { figures_of_tests; }
figures_of_fuzz() { awk '/^fuzz: / { runs += $3 } END { printf "%d inputs", runs }'; }
figures_of_mutants() { tail -n 1; }
# "whole: 19000 subscriptions, ..." is what the test says at its end.
figures_of_whole() { sed -n 's/^whole: //p'; }
# The same for "many: ". Lines about single disturbances come before it.
figures_of_many() { sed -n 's/^many: //p' | tail -n 1; }
figures_of_simulation() { sed -n 's/^simulate: //p'; }
# "    ratio 0.93, at least 0.88: met" comes after a line that begins with what was measured and a colon.
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
[ -n "${KAFKA_HOME:-}" ] || fail "the full length needs a Kafka: set KAFKA_HOME to an unpacked Kafka 3.9 or later"

mkdir -p "$logs"
commit=$(git rev-parse --short HEAD)
# The table itself changes with every part.
[ -z "$(git status --porcelain -- . ":!$table")" ] || commit+=" and changes"
if [ ! -f "$table" ]; then
    printf '%s\n' '# Last results at full length' '' \
        'Written by `make nightly`, one row a part; the date is of UTC.' '' \
        '| Part | Date | Commit | Result | Figures |' '|---|---|---|---|---|' >"$table"
fi

export PERENNIAL_TEST_KILL_ROUNDS=$kill_rounds FUZZ_SECONDS=60 SEEDS=10000 MANY_SECONDS=1200
failed=0
for part in ${PART:-${parts[@]}}; do
    printf '\n== %s\n' "$part"
    SECONDS=0
    target=${part/tests/test}
    target=${target/simulation/simulate}
    if make --no-print-directory "$target" 2>&1 | tee "$logs/$part.log"; then
        note "$part" passed "$("figures_of_$part" <"$logs/$part.log"), $SECONDS s"
    else
        note "$part" FAILED "$SECONDS s"
        failed=1
    fi
done
exit "$failed"
