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
dpkg-deb -x "$deb" "$work/deb"
sed "s|/usr/bin/homenode|$work/deb/usr/bin/homenode|" "$work/deb/usr/lib/systemd/system/homenode.service" > "$work/homenode.service"
systemd-analyze verify --man=no "$work/homenode.service" > "$work/verify" 2>&1 || true
# Keys that this systemd is too old for are named in the unit.
if grep -v -e RestartSteps -e RestartMaxDelaySec "$work/verify" | grep -q homenode; then cat "$work/verify" >&2; fail "systemd-analyze verify found something"; fi
say "systemd-analyze verify: clean"
rpm=$(echo "$out"/homenode-[0-9]*.x86_64.rpm)
mkdir "$work/rpm" && (cd "$work/rpm" && rpm2cpio "$rpm" | cpio -idm --quiet --no-absolute-filenames)
rpm -qpl "$rpm" 2>/dev/null | grep -qx /usr/bin/homenode || fail "the rpm has no /usr/bin/homenode"
rm -rf "$work/deb/usr/share/lintian" "$work/rpm/usr/share/lintian"
diff -r "$work/deb" "$work/rpm" || fail "deb and rpm have different files"
say "the rpm has the deb's files: $(rpm -qpl "$rpm" 2>/dev/null | wc -l)"

# 4. A life in a chroot without systemd: install, run, upgrade, remove, purge.
sources=$(apt-get indextargets --format '$(ORIGIN) deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
	sed -n 's/^Debian \(deb .* bookworm[^ ]* main\)$/\1/p' | sort -u)
eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
[ -z "${http_proxy:-}" ] || export http_proxy
echo "$sources" | mmdebstrap --quiet --mode=root --variant=essential --include=passwd '' "$work/root" - > "$work/mmdebstrap.log" 2>&1 || { tail "$work/mmdebstrap.log" >&2; fail "mmdebstrap failed"; }
files() { (cd "$work/root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./tmp -o -path ./var/cache \) -prune -o -type f -print | sort) && grep homenode "$work/root/etc/group" || true; }
cp "$deb" "$work/root/tmp/1.deb"
dpkg-deb -R "$deb" "$work/tree" && sed -i 's/^Version: .*/&+test/' "$work/tree/DEBIAN/control"
dpkg-deb -Zgzip -z1 --root-owner-group -b "$work/tree" "$work/root/tmp/2.deb" > /dev/null
in_root() { chroot "$work/root" "$@" > "$work/said" 2>&1 || { cat "$work/said" >&2; fail "$* failed in the chroot"; }; }
files | grep -v -e '^./etc/group' -e '^./etc/gshadow' > "$work/before"
in_root dpkg -i /tmp/1.deb
grep -q "^homenode:" "$work/root/etc/group" || fail "the installation made no group homenode"
in_root homenode topo --shape four
in_root dpkg -i /tmp/2.deb
in_root dpkg -r homenode
[ -e "$work/root/etc/homenode/agent.yaml" ] || fail "a removal took the configuration"
in_root dpkg -P homenode
files | grep -v -e '^./etc/group' -e '^./etc/gshadow' > "$work/after"
diff "$work/before" "$work/after" || fail "the purge left these files"
say "installed, upgraded, removed and purged without systemd: nothing is left"

# 5. The rpm in the same chroot, its scripts included. RPM has no purge: its group stays.
rpms() { rpm --root "$work/root" --dbpath /tmp/rpmdb "$@" > "$work/said" 2>&1 || { cat "$work/said" >&2; fail "rpm $* failed"; }; }
rpms -i --nodeps "$rpm"
in_root homenode topo --shape four
rpms -V --nodeps homenode
rpms -e homenode
find "$work/root" -xdev -path "$work/root/tmp" -prune -o -name '*homenode*' -print > "$work/left"
[ ! -s "$work/left" ] || { cat "$work/left" >&2; fail "rpm -e left these"; }
files | grep -v -e '^./etc/group' -e '^./etc/gshadow' -e '^homenode:' > "$work/after"
diff "$work/before" "$work/after" || fail "rpm -e left these files"
say "the rpm was installed, verified and removed: nothing is left but its group"
