#!/usr/bin/env bash
# Runs deploy/debian/postinst with stand-ins for systemctl and the probe: in which order units are restarted after an upgrade and after a
# downgrade, and when it stops. Needs dpkg, but no root, and changes nothing of this machine.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bin,systemd,etc,state}
cp deploy/debian/instances/*.env "$work/etc/"
cp deploy/debian/perennial.conf "$work/etc/"

# The same script as of version 0.2.0, with other paths, and without pauses.
sed -e 's/@VERSION@/0.2.0/' -e "s#/etc/perennial#$work/etc#g; s#/var/lib/perennial#$work/state#g; s#/run/systemd/system#$work/systemd#g" \
    -e "s#/usr/lib/perennial/probe#$work/bin/probe#g; s#sleep [0-9]*#sleep 0#" deploy/debian/postinst >"$work/postinst"

cat >"$work/bin/systemctl" <<'END'
#!/bin/sh
echo "$*" >>"$LOG"
case $1 in
list-units) for unit in $RUNNING; do echo "$unit.service loaded active running words"; done ;;
is-active) [ "$3" != "$BROKEN" ] ;;
esac
END
# UNREADY is a unit that is ready before its restart, and never after.
cat >"$work/bin/probe" <<'END'
#!/bin/sh
[ "$1" = readyz ] || exit 2
if [ "PERENNIAL_ADMIN_LISTEN=$2" = "$(tail -n 1 "$ETC/$UNREADY.env" 2>/dev/null)" ]; then
    ! grep -q "^try-restart perennial-$UNREADY.service" "$LOG"
fi
END
printf '#!/bin/sh\n' | tee "$work/bin/getent" "$work/bin/chown" >"$work/bin/adduser"
chmod 755 "$work"/bin/*

# install_over FROM BROKEN UNREADY EXIT UNIT...: the exit code, and the units that are restarted, in order.
install_over() {
    local from=$1 broken=$2 unready=$3 expected=$4 code=0
    shift 4
    : >"$work/log"
    env PATH="$work/bin:$PATH" LOG="$work/log" ETC="$work/etc" BROKEN="$broken" UNREADY="$unready" \
        RUNNING='perennial-api perennial-churn@1 perennial-churn@2 perennial-consumption@1 perennial-entitlements@2 perennial-ingest' \
        sh "$work/postinst" configure "$from" >/dev/null 2>&1 || code=$?
    local restarted
    restarted=$(sed -n 's/^try-restart perennial-\(.*\)\.service$/\1/p' "$work/log" | tr '\n' ' ')
    if [ "$code" != "$expected" ] || [ "$restarted" != "${*:+$* }" ]; then
        echo "postinst: from '$from', broken '$broken', unready '$unready': exit code $code, restarted: $restarted" >&2
        exit 1
    fi
}

install_over '' '' '' 0
install_over 0.1.0 '' '' 0 api entitlements@2 churn@1 churn@2 consumption@1 ingest
install_over 0.1.0 perennial-churn@1.service '' 1 api entitlements@2 churn@1
install_over 0.1.0 '' churn@2 1 api entitlements@2 churn@1 churn@2
# The copy of the read API may take longer than the package waits.
install_over 0.1.0 '' api 0 api entitlements@2 churn@1 churn@2 consumption@1 ingest
# The same version again.
install_over 0.2.0 '' '' 0 api entitlements@2 churn@1 churn@2 consumption@1 ingest
# Whoever has several hosts restarts in another order.
PERENNIAL_RESTART=no install_over 0.1.0 '' '' 0
# Back from later versions: writers before readers.
install_over 0.3.0 '' '' 0 ingest entitlements@2 churn@1 churn@2 consumption@1 api
install_over 0.10.0 perennial-churn@1.service '' 1 ingest entitlements@2 churn@1
