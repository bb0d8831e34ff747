#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the lab's second guest, build/lab/debian.img: Debian 12 with systemd,
# containerd and Docker, as an ext4 disk. It boots with the kernel and initramfs that
# lab/build.sh makes, so that comes first. What is up to date is left alone; what
# went in is listed in build/lab/DEBIAN-VERSIONS.
#
# The packages come from where this machine's own apt gets Debian 12 from, through
# its proxy if it has one; nothing is installed here but mmdebstrap, if it is missing.
set -eu
cd "$(dirname "$0")/.."
out=$PWD/build/lab
img=$out/debian.img
size=768M # of the file system; sparse, two thirds of it are used

say() { echo "lab: $*"; }
fail() { echo "lab: $*" >&2; exit 1; }

[ -s "$out/VERSIONS" ] || fail "no build/lab/VERSIONS: run 'make lab' first"
abi=$(sed -n 's/^linux-image-\([^_]*\)_.*/\1/p' "$out/VERSIONS")

# 1. Up to date? The modules in it are of one kernel, named in the first line.
newest=$(find lab/debian.sh lab/guest/debian -type f -exec ls -t {} + | head -n 1)
if [ -s "$img" ] && [ ! "$newest" -nt "$img" ] && [ "$(head -n 1 "$out/DEBIAN-VERSIONS" 2>/dev/null)" = "kernel $abi" ]; then
	say "ready: $img"
	exit 0
fi

# 2. What builds it.
[ "$(id -u)" = 0 ] || fail "building the Debian guest needs root: its files have owners"
command -v mke2fs >/dev/null || fail "no mke2fs: install e2fsprogs"
if ! command -v mmdebstrap >/dev/null; then
	grep -qs 'VERSION_ID="12"' /etc/os-release && grep -qs '^ID=debian' /etc/os-release ||
		fail "no mmdebstrap, and this is not Debian 12: install it with your package manager"
	say "installing mmdebstrap"
	apt-get -q update >/dev/null || fail "apt-get update failed: look at its errors above"
	DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends mmdebstrap >/dev/null ||
		fail "apt-get install mmdebstrap failed: look at its errors above"
fi
sources=$(apt-get indextargets --format '$(ORIGIN) deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
	sed -n 's/^Debian \(deb .* bookworm[^ ]* main\)$/\1/p' | sort -u)
[ -n "$sources" ] || fail "this machine's apt knows no Debian 12 (bookworm): run 'apt-get update', or use a Debian 12 machine"

# 3. The root file system. No documentation, no translations; units that load the
#    packages' lists at boot, or need hardware that is not there, are masked.
tree=$out/debian.tree
log=$out/debian.log
rm -rf --one-file-system "$tree"
eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
[ -z "${http_proxy:-}" ] || export http_proxy
[ -z "${https_proxy:-}" ] || export https_proxy
say "building Debian with systemd and containerd (some minutes, log in build/lab/debian.log)"
echo "$sources" | mmdebstrap --mode=root --variant=essential --skip=check/qemu \
	--include=systemd,systemd-sysv,dbus,containerd,runc,docker.io,iproute2,kmod,mount,procps \
	--aptopt='Apt::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
	--dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
	--dpkgopt='path-exclude=/usr/share/i18n/*' --dpkgopt='path-exclude=/usr/share/zoneinfo/*' \
	'' "$tree" - > "$log" 2>&1 || { tail -n 20 "$log" >&2; fail "mmdebstrap failed: see above"; }
cp -r lab/guest/debian/. "$tree/"
mkdir -p "$tree/scratch" "$tree/usr/lib/homenode/container"
(cd "$tree/usr/lib/homenode/container" && mkdir -p bin dev etc proc run sys tmp)
echo homenode-lab > "$tree/etc/hostname"
echo "127.0.0.1 localhost homenode-lab" > "$tree/etc/hosts"
: > "$tree/etc/resolv.conf"
# A fixed id: without one systemd treats every boot as the first.
echo 686f6d656e6f6465000000000000001a > "$tree/etc/machine-id"
rm -rf "$tree"/var/cache/apt/* "$tree"/var/lib/apt/lists/* "$tree"/var/log/*
mask() { for u in "$@"; do ln -sf /dev/null "$tree/etc/systemd/system/$u"; done; }
mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
	getty.target console-getty.service ldconfig.service proc-sys-fs-binfmt_misc.automount systemd-binfmt.service \
	systemd-firstboot.service systemd-hwdb-update.service systemd-journal-catalog-update.service \
	systemd-journal-flush.service systemd-logind.service systemd-machine-id-commit.service systemd-pstore.service \
	systemd-random-seed.service systemd-tmpfiles-clean.timer systemd-update-done.service systemd-update-utmp.service \
	systemd-update-utmp-runlevel.service modprobe@dm_mod.service modprobe@fuse.service modprobe@loop.service
mkdir -p "$tree/etc/systemd/system-generators" # the prompt is homenode's
ln -sf /dev/null "$tree/etc/systemd/system-generators/systemd-getty-generator"
systemctl() { chroot "$tree" systemctl "$@" >> "$log" 2>&1 || { tail -n 5 "$log" >&2; fail "systemctl $* in the guest's tree failed"; }; }
systemctl set-default multi-user.target
# Docker is installed for tests that start it: a boot does without.
systemctl disable docker.service docker.socket
systemctl enable containerd.service homenode-guest.service homenode-shell.service

# 4. The kernel's modules: those of the initramfs are loaded before.
modules=$out/root/lib/modules/$abi
lib=$tree/usr/lib/modules/$abi
mkdir -p "$lib"
for m in autofs4 overlay failover net_failover virtio_net; do
	ko=$(find "$modules/kernel" -name "$m.ko")
	[ -n "$ko" ] || fail "kernel $abi has no module $m"
	mkdir -p "$lib/${ko#"$modules"/}" && rmdir "$lib/${ko#"$modules"/}" && cp "$ko" "$lib/${ko#"$modules"/}"
done
cp "$modules/modules.builtin" "$modules/modules.order" "$lib/"
[ ! -e "$modules/modules.builtin.modinfo" ] || cp "$modules/modules.builtin.modinfo" "$lib/"
chroot "$tree" depmod "$abi" || fail "depmod in the guest's tree failed"

# 5. The disk. What a guest writes is not kept: no journal.
rm -f "$img" "$img.tmp"
mke2fs -q -t ext4 -O '^has_journal' -E root_owner=0:0 -m 0 -L homenode -d "$tree" "$img.tmp" "$size" >> "$log" 2>&1 ||
	{ tail -n 5 "$log" >&2; fail "mke2fs failed: see above"; }
{
	echo "kernel $abi"
	chroot "$tree" dpkg-query -W -f '${Package}_${Version}_${Architecture}\n'
} > "$out/DEBIAN-VERSIONS"
rm -rf --one-file-system "$tree"
mv "$img.tmp" "$img"
say "ready: $img, $(du -m "$img" | cut -f1) MB, systemd $(sed -n 's/^systemd_\([^_]*\)_.*/\1/p' "$out/DEBIAN-VERSIONS"), containerd $(sed -n 's/^containerd_\([^_]*\)_.*/\1/p' "$out/DEBIAN-VERSIONS")"
