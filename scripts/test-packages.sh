#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks what 'make packages' made: checksums and sizes, lintian, the unit, the contents of the
# rpm, and the deb's whole life in a chroot without systemd. With --twice it first builds
# again from a copy in another folder and compares every byte.
set -eu
cd "$(dirname "$0")/.."
fail() { echo "test-packages: $*" >&2; exit 1; }
say() { echo "test-packages: $*"; }
out=$PWD/build/packages
[ -s "$out/SHA256SUMS" ] || fail "no build/packages: run 'make packages' first"
[ "$(id -u)" = 0 ] || fail "it needs root, for a chroot"

packages=
for pair in lintian:lintian rpm:rpm rpm2cpio:rpm2cpio cpio:cpio mmdebstrap:mmdebstrap systemd-analyze:systemd; do
	command -v "${pair%%:*}" >/dev/null 2>&1 || packages="$packages ${pair##*:}"
done
if [ -n "$packages" ]; then
	say "installing$packages"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q update >/dev/null || fail "apt-get update failed"
	# shellcheck disable=SC2086
	apt-get -q install -y --no-install-recommends $packages >/dev/null || fail "apt-get install$packages failed"
fi
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

# 1. Checksums, sizes.
(cd "$out" && sha256sum --quiet --check SHA256SUMS)
[ -z "$(find "$out" -type f -size +15360k)" ] || fail "larger than 15 MiB: $(find "$out" -type f -size +15360k)"
say "checksums match, $(grep -c . "$out/SHA256SUMS") files, none above 15 MiB"

# 2. The same bytes from another folder, at another time, with another umask.
if [ "${1:-}" = --twice ]; then
	git clone -q . "$work/elsewhere/again"
	git diff --quiet HEAD -- || fail "files are not committed: a clone has others"
	(umask 077 && cd "$work/elsewhere/again" && scripts/packages.sh) > "$work/again.log" 2>&1 || { tail "$work/again.log" >&2; fail "the second build failed"; }
	cmp "$out/SHA256SUMS" "$work/elsewhere/again/build/packages/SHA256SUMS" || fail "the second build has other bytes"
	say "two builds in two folders are identical"
	rm -rf "$work/elsewhere"
fi

# 3. lintian, the unit, the rpm.
lintian --allow-root --fail-on error "$out"/*.deb > "$work/lintian" 2>&1 || { cat "$work/lintian" >&2; fail "lintian found errors"; }
say "lintian: no errors, $(grep -c '^W:' "$work/lintian" || true) warnings"
deb=$(echo "$out"/homenode_*_amd64.deb)
hubdeb=$(echo "$out"/homenode-hub_*_amd64.deb)
rpm=$(echo "$out"/homenode-[0-9]*.x86_64.rpm)
hubrpm=$(echo "$out"/homenode-hub-[0-9]*.x86_64.rpm)

# contents NAME DEB RPM: the unit of a service, and the same files in both.
contents() {
	dpkg-deb -x "$2" "$work/deb-$1"
	sed "s|/usr/bin/$1|$work/deb-$1/usr/bin/$1|" "$work/deb-$1/usr/lib/systemd/system/$1.service" > "$work/$1.service"
	systemd-analyze verify --man=no "$work/$1.service" > "$work/verify" 2>&1 || true
	# Keys that this systemd is too old for are named in the unit.
	if grep -v -e RestartSteps -e RestartMaxDelaySec "$work/verify" | grep -q homenode; then cat "$work/verify" >&2; fail "systemd-analyze verify found something in $1.service"; fi
	say "systemd-analyze verify $1.service: clean"
	mkdir "$work/rpm-$1" && (cd "$work/rpm-$1" && rpm2cpio "$3" | cpio -idm --quiet --no-absolute-filenames)
	rpm -qpl "$3" 2>/dev/null | grep -qx "/usr/bin/$1" || fail "$3 has no /usr/bin/$1"
	rm -rf "$work/deb-$1/usr/share/lintian" "$work/rpm-$1/usr/share/lintian"
	diff -r "$work/deb-$1" "$work/rpm-$1" || fail "deb and rpm of $1 have different files"
	say "the rpm of $1 has the deb's files: $(rpm -qpl "$3" 2>/dev/null | wc -l)"
}
contents homenode "$deb" "$rpm"
contents homenode-hub "$hubdeb" "$hubrpm"
# 0 is best of 10: the hub needs almost nothing of its host.
systemd-analyze security --offline=true --threshold=15 --no-pager "$work/homenode-hub.service" > "$work/verify" 2>&1 || { cat "$work/verify" >&2; fail "homenode-hub.service is exposed to more than 1.5"; }
say "homenode-hub.service: $(grep -o 'exposure level.*: [0-9.]*' "$work/verify")"

# 4. A life in a chroot without systemd: install, run, upgrade, remove, purge.
sources=$(apt-get indextargets --format '$(ORIGIN) deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
	sed -n 's/^Debian \(deb .* bookworm[^ ]* main\)$/\1/p' | sort -u)
eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
[ -z "${http_proxy:-}" ] || export http_proxy
echo "$sources" | mmdebstrap --quiet --mode=root --variant=essential --include=passwd '' "$work/root" - > "$work/mmdebstrap.log" 2>&1 || { tail "$work/mmdebstrap.log" >&2; fail "mmdebstrap failed"; }
files() { (cd "$work/root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./tmp -o -path ./var/cache \) -prune -o -type f -print | sort) && grep homenode "$work/root/etc/group" || true; }
# Tools for users and groups leave a copy of each file that they change.
installed() { files | grep -v -e '^./etc/group' -e '^./etc/gshadow' -e '^./etc/passwd' -e '^./etc/shadow'; }
cp "$deb" "$work/root/tmp/1.deb"
dpkg-deb -R "$deb" "$work/tree" && sed -i 's/^Version: .*/&+test/' "$work/tree/DEBIAN/control"
dpkg-deb -Zgzip -z1 --root-owner-group -b "$work/tree" "$work/root/tmp/2.deb" > /dev/null
in_root() { chroot "$work/root" "$@" > "$work/said" 2>&1 || { cat "$work/said" >&2; fail "$* failed in the chroot"; }; }
installed > "$work/before"
in_root dpkg -i /tmp/1.deb
grep -q "^homenode:" "$work/root/etc/group" || fail "the installation made no group homenode"
in_root homenode topo --shape four
in_root dpkg -i /tmp/2.deb
in_root dpkg -r homenode
[ -e "$work/root/etc/homenode/agent.yaml" ] || fail "a removal took the configuration"
in_root dpkg -P homenode
installed > "$work/after"
diff "$work/before" "$work/after" || fail "the purge left these files"
say "installed, upgraded, removed and purged without systemd: nothing is left"

# The hub's package: it starts as it is, lets a host in as root, and its purge keeps what is the fleet's.
cp "$hubdeb" "$work/root/tmp/hub.deb"
in_root dpkg -i /tmp/hub.deb
grep -q "^homenode-hub:" "$work/root/etc/passwd" || fail "the installation made no user homenode-hub"
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
page=127.0.0.1:$(port)
sed -e "s/127.0.0.1:7443/127.0.0.1:$(port)/" -e "s/^#page: .*/page: $page/" "$work/root/etc/homenode/hub.yaml" > "$work/root/tmp/hub.yaml"
# shellcheck disable=SC2016 # it is the inner shell's
in_root env PAGE="$page" sh -ec 'install -d -o homenode-hub -g homenode-hub -m 0700 /var/lib/homenode-hub
cd /; setpriv --reuid homenode-hub --regid homenode-hub --clear-groups --no-new-privs --bounding-set=-all homenode-hub serve --config /tmp/hub.yaml & hub=$!
n=0; until homenode-hub query sql --hub http://$PAGE "SELECT 1 AS one" >/dev/null 2>&1; do n=$((n + 1)); [ $n -lt 300 ]; sleep 0.1; done
homenode-hub enrol db-7 --config /tmp/hub.yaml | grep -- --token; homenode-hub revoke db-8 --config /tmp/hub.yaml
[ -z "$(find /var/lib/homenode-hub ! -user homenode-hub)" ]
kill $hub; wait $hub'
in_root dpkg -i /tmp/hub.deb
in_root dpkg -r homenode-hub
[ -e "$work/root/etc/homenode/hub.yaml" ] || fail "a removal took the hub's configuration"
in_root dpkg -P homenode-hub
grep -q "homenode-hub stays" "$work/said" && [ -e "$work/root/var/lib/homenode-hub/status.db" ] || fail "a purge took the hub's store"
in_root sh -c 'rm -r /var/lib/homenode-hub && dpkg -i /tmp/hub.deb && dpkg -P homenode-hub'
installed > "$work/after"
diff "$work/before" "$work/after" || fail "the purge of the hub left these files"
! grep homenode "$work/root/etc/passwd" || fail "the purge left the hub's user"
say "the hub was installed, served as its own user, was removed and purged: it kept its store"

# 5. The rpm in the same chroot, its scripts included. RPM has no purge: its group stays.
rpms() { rpm --root "$work/root" --dbpath /tmp/rpmdb "$@" > "$work/said" 2>&1 || { cat "$work/said" >&2; fail "rpm $* failed"; }; }
rpms -i --nodeps "$rpm"
in_root homenode topo --shape four
rpms -V --nodeps homenode
rpms -e homenode
find "$work/root" -xdev -path "$work/root/tmp" -prune -o -name '*homenode*' -print > "$work/left"
[ ! -s "$work/left" ] || { cat "$work/left" >&2; fail "rpm -e left these"; }
installed | grep -v '^homenode:' > "$work/after"
diff "$work/before" "$work/after" || fail "rpm -e left these files"
rpms -i --nodeps "$hubrpm"
in_root homenode-hub --version
rpms -V --nodeps homenode-hub
rpms -e homenode-hub
find "$work/root" -xdev -path "$work/root/tmp" -prune -o -name '*homenode*' -print > "$work/left"
[ ! -s "$work/left" ] || { cat "$work/left" >&2; fail "rpm -e homenode-hub left these"; }
say "the rpms were installed, verified and removed: nothing is left but their group and user"
