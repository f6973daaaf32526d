#!/usr/bin/env bash
# Builds .build/deb/perennial_VERSION_ARCH.deb from .build/release/perennial: `make deb`. Needs dpkg-dev and binutils.
#
# The package fits the Debian release that it is built on: the libraries have other names in another release, and apt then refuses to
# install it. MAINTAINER='Name <address>' names who answers for the package.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly program=.build/release/perennial
readonly target=.build/deb
readonly maintainer=${MAINTAINER:-The authors of Perennial <perennial@example.com>}

fail() {
    printf 'package: %s\n' "$1" >&2
    exit 1
}

[ -x "$program" ] || fail "$program is missing: make release"
for tool in dpkg-deb dpkg-shlibdeps strip; do
    command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install dpkg-dev binutils"
done

version=$("$program" version 2>/dev/null | sed -n 's/^Perennial //p')
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "perennial version prints no version"
architecture=$(dpkg --print-architecture)
readonly version architecture name=perennial_${version}_$architecture

# The same program and files give the same package, byte for byte.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(stat -c %Y "$program")}
export SOURCE_DATE_EPOCH

rm -rf "$target"
mkdir -p "$target"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
readonly root=$work/root
umask 022

put() { # MODE FILE PLACE
    install -D -m "$1" "$2" "$root/$3"
}

put 755 "$program" usr/bin/perennial
# The names and lines for a debugger take two thirds of the file. The names of functions that perf shows stay in .dynsym.
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$root/usr/bin/perennial"
put 755 deploy/debian/probe usr/lib/perennial/probe

for unit in deploy/systemd/*.service deploy/systemd/*.target deploy/systemd/perennial-.service.d/*.conf; do
    put 644 "$unit" "usr/lib/systemd/system/${unit#deploy/systemd/}"
done

# Nobody but root and the group perennial reads them: postinst gives them the group.
put 640 deploy/debian/perennial.conf etc/perennial/perennial.conf
for file in deploy/debian/instances/*.env; do
    put 640 "$file" "etc/perennial/${file##*/}"
done
chmod 750 "$root/etc/perennial"
install -d -m 750 "$root/var/lib/perennial"

# What operators take from here; not the tests beside it.
for part in prometheus/*.yml grafana/dashboards/* grafana/provisioning/*/* topics/*.conf; do
    for file in deploy/$part; do
        [ -f "$file" ] || fail "there is no $file"
        put 644 "$file" "usr/share/perennial/${file#deploy/}"
    done
done

readonly doc=$root/usr/share/doc/perennial
mkdir -p "$doc"
{
    echo "Perennial $version"
    echo
    cat NOTICE
    echo
    echo "On Debian systems, the text of the Apache License, Version 2.0 is in /usr/share/common-licenses/Apache-2.0."
} >"$doc/copyright"
# Debian's form of a changelog, with one entry. What changed is in CHANGELOG.md, which is beside it.
gzip -9n >"$doc/changelog.gz" <<END
perennial ($version) unstable; urgency=medium

  * What has changed is in CHANGELOG.md.gz.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END
gzip -9n <CHANGELOG.md >"$doc/CHANGELOG.md.gz"
put 644 deploy/debian/lintian-overrides usr/share/lintian/overrides/perennial

# dpkg-shlibdeps reads debian/control, and writes the packages of the libraries with the least versions that have all functions used.
mkdir -p "$work/debian"
printf 'Source: perennial\n\nPackage: perennial\nArchitecture: any\n' >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O root/usr/bin/perennial 2>shlibdeps.log | sed -n 's/^shlibs:Depends=//p')
[ -n "$libraries" ] || fail "dpkg-shlibdeps found no libraries: $(cat "$work/shlibdeps.log")"

mkdir -p "$root/DEBIAN"
# tzdata: days of churn.zone. ca-certificates: perennial consumption calls Apple over TLS. adduser: makes the user (deploy/debian/postinst
# says why adduser). perl-base, for the probe, is Essential.
cat >"$root/DEBIAN/control" <<END
Package: perennial
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -k -s --exclude=DEBIAN "$root" | cut -f 1)
Depends: $libraries, adduser, ca-certificates, tzdata
Section: net
Priority: optional
Description: pipeline for Apple's App Store Server Notifications, on Kafka
 Perennial receives App Store Server Notifications over HTTPS, verifies them
 and keeps them in Kafka. From them it computes what each customer may use,
 how many customers churn, and how to answer refund requests.
 .
 The package has the program, systemd units, settings, rules for Prometheus
 and dashboards for Grafana. It starts nothing by itself: see
 /etc/perennial/perennial.conf.
END
(cd "$root" && find etc -type f | sed 's|^|/|' | LC_ALL=C sort) >"$root/DEBIAN/conffiles"
(cd "$root" && find . -type f -not -path './DEBIAN/*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
for script in postinst prerm postrm; do
    put 755 "deploy/debian/$script" "DEBIAN/$script"
done
sed -i "s/@VERSION@/$version/" "$root/DEBIAN/postinst"
grep -qx "version=$version" "$root/DEBIAN/postinst" || fail "deploy/debian/postinst has no place for the version"

dpkg-deb --root-owner-group -Zxz --build "$root" "$target/$name.deb" >/dev/null
echo "$target/$name.deb"
