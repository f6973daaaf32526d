#!/usr/bin/env bash
# Runs each fuzz target for FUZZ_SECONDS, starting from its corpus: `make fuzz`, `make fuzz FUZZ_SECONDS=60 TARGET=jws`.
#
# A finding stops the run, prints the folder of the input and exits with a status that is not 0. Inputs that cover new code are
# added to a working corpus below .build; `make fuzz KEEP=1` merges them into Tests/Fuzz/Corpus. Tests/Fuzz/runs.md lists long runs.
set -euo pipefail
cd "$(dirname "$0")"

readonly duration=${FUZZ_SECONDS:-10}
# Swift's own backtrace triggers the address sanitizer, which then hides the finding.
export SWIFT_BACKTRACE=enable=no
readonly targets=(base64 json certificate jws payload body facts state counts policy usage refunds ocsp heads)
readonly wanted=${TARGET:-${targets[*]}}
# SwiftPM uses the linker gold, which cannot link the sanitizers of Swift and of C together; lld can.
readonly flags=(-c release --product fuzz -Xswiftc -sanitize=fuzzer,address -Xcc -fsanitize=fuzzer-no-link,address
    -Xswiftc -use-ld=lld)
# Longest input in bytes. Inputs longer than a nested notification of real size take more time but reach no new code.
declare -A longest=([base64]=512 [json]=4096 [certificate]=2048 [jws]=8192 [payload]=4096 [body]=4096
    [facts]=4096 [state]=2048 [counts]=4096 [policy]=4096 [usage]=2048 [refunds]=4096 [ocsp]=1024 [heads]=2048)

for target in $wanted; do
    [[ " ${targets[*]} " == *" $target "* ]] || { echo "fuzz: there is no target '$target'; the targets are: ${targets[*]}" >&2; exit 2; }
done

swift build -j 2 "${flags[@]}"
program=$(swift build -c release --show-bin-path)/fuzz

for target in $wanted; do
    work=.build/corpus/$target
    mkdir -p "$work" "Corpus/$target" .build/findings
    log=.build/findings/$target.log
    export FUZZ_TARGET=$target
    if ! "$program" -max_total_time="$duration" -max_len="${longest[$target]}" -timeout=5 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix=".build/findings/$target-" "$work" "Corpus/$target" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "fuzz: $target FAILED: the input is below $PWD/.build/findings" >&2
        exit 1
    fi
    runs=$(awk '/stat::number_of_executed_units/ { print $2 }' "$log")
    [ "${runs:-0}" -gt 0 ] || { tail -n 40 "$log"; echo "fuzz: $target ran no inputs" >&2; exit 1; }
    printf 'fuzz: %-12s %9d inputs in %s s, no finding\n' "$target" "$runs" "$duration"
    if [ -n "${KEEP:-}" ]; then "$program" -merge=1 -max_len="${longest[$target]}" "Corpus/$target" "$work" >>"$log" 2>&1; fi
done
