#!/usr/bin/env bash
# Checks the rules for Prometheus and their tests, and that every alert has a test, a fault and a runbook.
# Needs promtool (Debian: prometheus), 2.42 or newer.
set -euo pipefail
cd "$(dirname "$0")"

runbooks=../../docs/operate/runbooks
faults=0
fault() {
    echo "deploy/prometheus: $*" >&2
    faults=1
}

promtool check config prometheus.yml
promtool test rules tests/*.yml

# PerennialReadAPIBehind: perennial-read-api-behind
page_of() {
    sed -E 's/([a-z])([A-Z])/\1-\2/g; s/([A-Z])([A-Z][a-z])/\1-\2/g' <<< "$1" | tr '[:upper:]' '[:lower:]'
}

alerts=$(sed -n 's/^ *- alert: //p' alerts.yml | sort -u)
rules=$(grep -c '^ *- alert: ' alerts.yml)
for key in expr for severity summary description runbook_url; do
    count=$(grep -c "^ *$key: " alerts.yml) || true
    [ "$count" = "$rules" ] || fault "alerts.yml has $rules alerts and $count times $key"
done

for alert in $alerts; do
    page=$(page_of "$alert").md
    # In the tests, an alert that fires has its name in a line of its own.
    grep -q "^ *alertname: $alert\$" tests/*.yml || fault "no test lets $alert fire"
    grep -q "alertname: $alert, exp_alerts: \[\]" tests/*.yml || fault "no test keeps $alert quiet"
    grep -q "^| $alert" faults.md || fault "faults.md has no row for $alert"
    grep -q "runbook_url: docs/operate/runbooks/$page\$" alerts.yml || fault "$alert does not link to $page"
    grep -q "^| \[$alert\]($page) |" "$runbooks/README.md" || fault "the index of the runbooks has no row for $alert"
    if [ ! -f "$runbooks/$page" ]; then
        fault "$alert has no page $page"
        continue
    fi
    [ "$(head -n 1 "$runbooks/$page")" = "# $alert" ] || fault "the title of $page is not $alert"
    headings=$(grep '^## ' "$runbooks/$page" | tr '\n' ' ')
    [ "$headings" = "## What customers notice ## Find the cause ## Cure ## It is over when " ] ||
        fault "$page has other headings: $headings"
    [ "$(wc -l < "$runbooks/$page")" -le 60 ] || fault "$page has more than 60 lines"
done

for page in "$runbooks"/perennial-*.md; do
    name=$(head -n 1 "$page")
    grep -q "^ *- alert: ${name#\# }\$" alerts.yml || fault "$page is about no alert"
done

[ "$faults" = 0 ] || exit 1
echo "deploy/prometheus: $(wc -w <<< "$alerts") alerts are tested and have a runbook"
