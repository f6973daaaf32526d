#!/usr/bin/env bash
# Runs the steps of deploy/Dockerfile in clean Debian systems, then the program that they install, then everything that the package
# does to a host.
#
# sudo -E make install-test
# sudo deploy/tests/install.sh bookworm|trixie
#
# It needs root (chroot, mounts), debootstrap, a Swift toolchain in /opt/swift or SWIFT, a mirror of Debian, some GiB below .build,
# port 9464 of this machine, and the time of a release build, two to eleven minutes on two cores. It changes nothing of this machine:
# it works below .build/install/SUITE, which stays if something fails, and its mounts are in a namespace of their own.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly swift=${SWIFT:-/opt/swift} mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
readonly suite=${1:-} inside=${2:-}
readonly home=$PWD/.build/install/$suite

fail() {
    printf 'install test: %s: %s\n' "$suite" "$1" >&2
    exit 1
}

say() {
    printf '\n== %4d s: %s\n' "$SECONDS" "$1"
}

case $suite in
bookworm) readonly release=12 ;;
trixie) readonly release=13 ;;
*) fail "usage: install.sh bookworm|trixie" ;;
esac

if [ "$inside" != --inside ]; then
    [ "$(id -u)" = 0 ] || fail "this needs root: it makes systems with debootstrap and runs commands in them with chroot"
    command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
    [ -x "$swift/usr/bin/swift" ] || fail "there is no $swift/usr/bin/swift: set SWIFT to a toolchain"
    # Nothing of an earlier run is mounted: its namespace is gone. --one-file-system is for the case that this is wrong.
    rm -rf --one-file-system "$home"
    mkdir -p "$home"
    unshare --mount --propagation private "$PWD/deploy/tests/install.sh" "$suite" --inside
    rm -rf --one-file-system "$home"
    printf 'install test: %s: passed after %d s\n' "$suite" "$SECONDS"
    exit
fi

# ---- Systems ------------------------------------------------------------------------------------------------------------------------

# A clean system in $home/NAME, with /proc, and the toolchain as the step `toolchain` would install it.
make_system() {
    local root=$home/$1
    if [ ! -d "$home/base" ]; then
        say "debootstrap $suite"
        debootstrap --variant=minbase "$suite" "$home/base" "$mirror" >"$home/debootstrap.log" 2>&1 ||
            fail "debootstrap failed: $home/debootstrap.log"
        cp -L /etc/resolv.conf "$home/base/etc/resolv.conf"
        # No service starts in these systems.
        printf '#!/bin/sh\nexit 101\n' >"$home/base/usr/sbin/policy-rc.d"
        chmod 755 "$home/base/usr/sbin/policy-rc.d"
    fi
    cp -a "$home/base" "$root"
    mount -t proc proc "$root/proc"
}

# in_system NAME USER:GROUP COMMAND [ARGUMENT]...: with no variables but those of `variables`.
declare -A folder=() user=()
variables=()
in_system() {
    local root=$home/$1 who=$2
    shift 2
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp "${variables[@]}" \
        chroot --userspec="$who" "$root" "$@"
}

as_root() {
    local system=$1
    shift
    in_system "$system" 0:0 "$@"
}

# ---- The steps of the Dockerfile ----------------------------------------------------------------------------------------------------

entrypoint=() health=() volume=
[ "$(cat deploy/Dockerfile.dockerignore)" = $'.git\n**/.build' ] || fail "deploy/Dockerfile.dockerignore has changed: change COPY here as well"

run_step() {
    local stage=$1 instruction=$2
    shift 2
    local root=$home/$stage
    case $instruction in
    FROM)
        [ "$1" = "debian:$release-slim" ] || fail "the stage $stage begins with $1"
        make_system "$stage"
        folder[$stage]=/
        user[$stage]=0:0
        variables=()
        if [ "$stage" = build ]; then
            mkdir -p "$root/opt/swift"
            mount --bind "$swift" "$root/opt/swift"
        fi
        ;;
    WORKDIR)
        mkdir -p "$root$1"
        folder[$stage]=$1
        ;;
    COPY)
        if [ "$1" = . ]; then
            tar --exclude=./.git --exclude=.build -cf - . | tar -C "$root${folder[$stage]}" --no-same-owner -xf -
        else
            install -D "$1" "$root${folder[$stage]}/$2"
        fi
        ;;
    RUN)
        if [ -n "${2:-}" ]; then
            mkdir -p "$root$4"
            mount --bind -o ro "$home/$2$3" "$root$4"
        fi
        in_system "$stage" "${user[$stage]}" /bin/sh -c "cd '${folder[$stage]}' && $1"
        if [ -n "${2:-}" ]; then
            umount "$root$4"
            rmdir "$root$4"
        fi
        ;;
    ENV) variables+=("$1") ;;
    USER) user[$stage]=$1 ;;
    VOLUME) volume=$1 ;;
    ENTRYPOINT) entrypoint=("$@") ;;
    HEALTHCHECK) health=("$@") ;;
    CMD | EXPOSE) ;;
    *) fail "the instruction $instruction is not known here" ;;
    esac
}

deploy/tests/steps.py deploy/Dockerfile "DEBIAN=$release" >"$home/steps"
[ "$(grep -c $'\tRUN\t' "$home/steps")" -ge 3 ] || fail "deploy/Dockerfile has fewer RUN lines than it needs"
while IFS=$'\t' read -r -a step <&3; do
    say "${step[*]}"
    run_step "${step[@]}" </dev/null
done 3<"$home/steps"

# ---- The program in the last stage, as a container has it: no root, nothing writable but the volume ----------------------------------

say "the container"
root=$home/runtime
[ "${user[runtime]}" = 10001:10001 ] || fail "the container runs as ${user[runtime]}"
[ -z "$(as_root runtime find / -xdev -path '*perennial*' -perm /6000)" ] || fail "a file of the package is setuid or setgid"
mount --bind "$root" "$root"
mount --bind "$root$volume" "$root$volume"
mount -o remount,bind,ro "$root"
# The bind mount hides /proc.
mount -t proc proc "$root/proc"

container() {
    in_system runtime "${user[runtime]}" "$@"
}

if container touch /tmp/x 2>/dev/null; then fail "the root of the container is writable"; fi
container touch "$volume/x" || fail "$volume is not writable for the user of the container"
if container ldd "${entrypoint[0]}" | grep 'not found'; then fail "a library is missing"; fi
container "${entrypoint[@]}" version
container "${entrypoint[@]}" demo --for 30s >"$home/demo.log" 2>&1 || fail "the demo failed: $home/demo.log"
# The words that the view has when it is not on a terminal. A demo that accepts nothing has not run.
grep -Eq '[1-9][0-9,]* accepted' "$home/demo.log" || fail "the demo accepted nothing: $home/demo.log"

# A worker without a Kafka lives and is not ready.
if container "${health[@]}" >/dev/null; then fail "the health check succeeds although nothing runs"; fi
container "${entrypoint[@]}" churn --kafka.bootstrap.servers 127.0.0.1:9 >"$home/churn.log" 2>&1 &
worker=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
    if container "${health[@]}" >/dev/null; then break; fi
    sleep 1
done
container "${health[@]}" || fail "the health check fails although the process runs: $home/churn.log"
if container "${health[0]}" readyz >/dev/null; then fail "a worker without Kafka is ready"; fi
# Its child: $worker is the shell that waits for it.
pkill -TERM -P "$worker"
wait "$worker" || fail "the worker did not exit with 0 on SIGTERM: $home/churn.log"

# ---- The package on a host ----------------------------------------------------------------------------------------------------------

say "a host with systemd"
variables=()
make_system host
mapfile -t packages < <(find "$home/build/source/.build/deb" -name '*.deb')
[ "${#packages[@]}" = 1 ] || fail "make deb has made ${#packages[@]} packages"
cp "${packages[0]}" "$home/host/tmp/new.deb"
as_root host sh -c 'apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends lintian systemd' \
    >"$home/host.log" 2>&1 || fail "apt-get failed: $home/host.log"

say "lintian"
# Debian's judge of packages. deploy/debian/lintian-overrides says what is meant to be so.
as_root host lintian --allow-root --fail-on error /tmp/new.deb || fail "lintian finds errors in the package"

# The same package with a lower version, and with another form of the settings file: so dpkg has to choose between two changed files.
as_root host sh -c 'cd /tmp && dpkg-deb -R new.deb old && sed -i "s/^Version: .*/Version: 0.0.1/" old/DEBIAN/control &&
    sed -i "s/^version=.*/version=0.0.1/" old/DEBIAN/postinst && sed -i "1i # Of the version before." old/etc/perennial/perennial.conf &&
    dpkg-deb --root-owner-group --build old old.deb >/dev/null && rm -r old'

files_of_host() {
    as_root host find / -xdev \( -path /proc -o -path /tmp -o -path /var/log -o -path /var/cache -o -path /var/lib/dpkg -o -path /var/lib/apt \) \
        -prune -o -print | LC_ALL=C sort
}
files_of_host >"$home/before"

say "install"
as_root host sh -c 'DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends /tmp/old.deb' >"$home/host.log" 2>&1 ||
    fail "the package does not install: $home/host.log"
installed_version() {
    # shellcheck disable=SC2016 # dpkg-query's own variable
    as_root host dpkg-query -W -f '${Version}' perennial
}
[ "$(installed_version)" = 0.0.1 ] || fail "it is not installed"

expect() { # PLACE MODE:USER:GROUP
    [ "$(as_root host stat -c %a:%U:%G "$1")" = "$2" ] || fail "$1 is $(as_root host stat -c %a:%U:%G "$1"), not $2"
}
expect /etc/perennial 750:root:perennial
expect /etc/perennial/perennial.conf 640:root:perennial
expect /etc/perennial/churn@1.env 640:root:perennial
expect /var/lib/perennial 750:perennial:perennial
as_root host getent passwd perennial | grep -q ':/usr/sbin/nologin$' || fail "the user perennial can log in"
[ -z "$(as_root host find /etc/systemd -name 'perennial*')" ] || fail "installing enables a unit"
if as_root host grep -q -v -E '^#|^$|^state\.directory = ' /etc/perennial/perennial.conf; then fail "the settings file decides something"; fi

# What the user perennial can read and another user cannot.
check_as() {
    in_system host "$1" perennial check --config /etc/perennial/perennial.conf 2>&1 || true
}
check_as perennial:perennial | grep -q 'kafka.bootstrap.servers is not set' || fail "the user perennial cannot read its settings"
check_as nobody:nogroup | grep -q 'cannot read' || fail "every user can read the settings"

say "units"
for unit in ingest entitlements@1 churn@1 consumption@1 api; do
    as_root host systemd-analyze verify --man=no "perennial-$unit.service" || fail "perennial-$unit.service is wrong"
    as_root host systemd-analyze security --offline=true --threshold=20 "perennial-$unit.service" | tail -n 1
done
as_root host systemd-analyze verify --man=no perennial.target || fail "perennial.target is wrong"

say "upgrade"
echo 'topic.prefix = kept' >>"$home/host/etc/perennial/perennial.conf"
echo 'PERENNIAL_LOG_LEVEL=debug' >>"$home/host/etc/perennial/churn@1.env"
in_system host perennial:perennial touch /var/lib/perennial/state
# There is no systemd to talk to: a stand-in writes down what it is asked. RUNNING are the units that run, BROKEN does not come back.
mkdir -p "$home/host/run/systemd/system"
cat >"$home/host/usr/bin/systemctl" <<'END'
#!/bin/sh
echo "$*" >>/tmp/systemctl.log
case $1 in
list-units) for unit in $RUNNING; do echo "$unit loaded active running words"; done ;;
is-active) [ "$3" != "$BROKEN" ] ;;
esac
END
running='RUNNING=perennial-api.service perennial-churn@1.service perennial-churn@2.service perennial-entitlements@1.service perennial-ingest.service'
asked() {
    grep -E '^(try-restart|stop)' "$home/host/tmp/systemctl.log" || true
}
# As docs/operate/runbooks/upgrade.md does it, and without anybody who could answer a question.
install_package() { # FILE [VARIABLE=VALUE]...
    local file=$1
    shift
    as_root host env "$running" "$@" apt-get -q -y install --allow-downgrades --no-install-recommends -o Dpkg::Options::=--force-confold \
        "$file" </dev/null >"$home/host.log" 2>&1
}
install_package /tmp/new.deb || fail "the package does not upgrade: $home/host.log"
[ "$(installed_version)" != 0.0.1 ] || fail "it is not upgraded"
[ "$(asked)" = "$(printf 'try-restart perennial-%s.service\n' api entitlements@1 churn@1 churn@2 ingest)" ] ||
    fail "units are restarted in another order: $(asked)"
grep -q '^daemon-reload' "$home/host/tmp/systemctl.log" || fail "systemd does not read the new units"
grep -q '^topic.prefix = kept' "$home/host/etc/perennial/perennial.conf" || fail "the upgrade loses settings"
grep -q '^PERENNIAL_LOG_LEVEL=debug' "$home/host/etc/perennial/churn@1.env" || fail "the upgrade loses the settings of an instance"
[ -e "$home/host/etc/perennial/perennial.conf.dpkg-dist" ] || fail "the settings file that the new version ships is not beside the old one"
[ -e "$home/host/var/lib/perennial/state" ] || fail "the upgrade loses state"
expect /etc/perennial/perennial.conf 640:root:perennial
expect /etc/perennial/churn@1.env 640:root:perennial

say "an upgrade that does not come back"
rm "$home/host/tmp/systemctl.log"
if as_root host env "$running" BROKEN=perennial-churn@1.service dpkg -i /tmp/new.deb >"$home/host.log" 2>&1; then
    fail "it succeeds although a unit did not come back"
fi
[ "$(asked)" = "$(printf 'try-restart perennial-%s.service\n' api entitlements@1 churn@1)" ] || fail "it goes on after a unit did not come back"
rm "$home/host/tmp/systemctl.log"
as_root host env "$running" dpkg --configure -a >"$home/host.log" 2>&1 || fail "it cannot be configured after the cure: $home/host.log"
[ "$(asked | wc -l)" = 5 ] || fail "it does not restart all units after the cure"

say "a downgrade"
rm "$home/host/tmp/systemctl.log"
install_package /tmp/old.deb || fail "the package does not downgrade: $home/host.log"
[ "$(asked)" = "$(printf 'try-restart perennial-%s.service\n' ingest entitlements@1 churn@1 churn@2 api)" ] ||
    fail "units are restarted in another order on the way back: $(asked)"

say "an upgrade that restarts nothing"
rm "$home/host/tmp/systemctl.log"
install_package /tmp/new.deb PERENNIAL_RESTART=no || fail "the package does not upgrade without restarts: $home/host.log"
[ "$(installed_version)" != 0.0.1 ] || fail "it is not upgraded without restarts"
[ -z "$(asked)" ] || fail "units are restarted although PERENNIAL_RESTART is no: $(asked)"
grep -q 'nothing is restarted' "$home/host.log" || fail "it does not say that nothing is restarted: $home/host.log"

say "remove"
rm "$home/host/tmp/systemctl.log"
as_root host dpkg --remove perennial >"$home/host.log" 2>&1 || fail "the package cannot be removed: $home/host.log"
asked | grep -q '^stop perennial-\*.service perennial.target$' || fail "removing does not stop the units"
[ ! -e "$home/host/usr/bin/perennial" ] || fail "the program is still there"
[ -e "$home/host/var/lib/perennial/state" ] || fail "removing deletes state"
[ -e "$home/host/etc/perennial/perennial.conf" ] || fail "removing deletes settings"

say "purge"
mkdir -p "$home/host/etc/systemd/system/multi-user.target.wants" "$home/host/etc/systemd/system/perennial-churn@1.service.d"
ln -s /usr/lib/systemd/system/perennial-churn@.service "$home/host/etc/systemd/system/multi-user.target.wants/perennial-churn@1.service"
touch "$home/host/etc/perennial/secret"
# The state is on a disk of its own, as docs/operate/runbooks/lose-a-disk.md says.
mount -t tmpfs -o size=1m tmpfs "$home/host/var/lib/perennial"
mkdir "$home/host/var/lib/perennial/folder"
touch "$home/host/var/lib/perennial/folder/state"
as_root host dpkg --purge perennial >"$home/host.log" 2>&1 || fail "the package cannot be purged: $home/host.log"
[ -z "$(ls -A "$home/host/var/lib/perennial")" ] || fail "purging leaves state on a disk of its own"
umount "$home/host/var/lib/perennial"
[ -e "$home/host/var/lib/perennial/state" ] || fail "the disk was not mounted"
# Without such a disk nothing is left.
as_root host sh -c 'dpkg -i /tmp/new.deb && dpkg --purge perennial' >"$home/host.log" 2>&1 || fail "the package cannot be purged again: $home/host.log"
rmdir "$home/host/run/systemd/system" "$home/host/run/systemd" 2>/dev/null || true
files_of_host | { grep perennial || true; } >"$home/left"
[ ! -s "$home/left" ] || fail "purging leaves $(tr '\n' ' ' <"$home/left")"
# Whatever else was there before is there still.
LC_ALL=C comm -23 "$home/before" <(files_of_host) | { grep -v '^/run' || true; } >"$home/gone"
[ ! -s "$home/gone" ] || fail "purging has deleted $(tr '\n' ' ' <"$home/gone")"

say "done"
