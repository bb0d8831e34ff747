#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the lab into build/lab, or the folder that is named: the guest's kernel and PMU module (from Debian's
# packages, unpacked and not installed), the QEMU plugin, the load program and
# the initramfs. What is up to date is left alone.
#
# Debian keeps one kernel ABI at a time: the metapackage is resolved, and image,
# headers, kbuild and compiler are taken in that one version (build/lab/VERSIONS).
set -eu
cd "$(dirname "$0")/.."
out=${1:-$PWD/build/lab}
case $out in /*) ;; *) echo "lab: name a whole path, not $out" >&2; exit 2 ;; esac
mkdir -p "$out/deb"

say() { echo "lab: $*"; }
fail() { echo "lab: $*" >&2; exit 1; }

# 1. The guest's kernel.
# The names of the newest image and what modules for it are built with.
kernel() {
	image=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-image-[0-9].*cloud-amd64\)$/\1/p' | head -n 1)
	[ -n "$image" ] || fail "cannot find Debian's cloud kernel: run 'apt-get update', or use a Debian 12 machine"
	abi=${image#linux-image-}
	common=linux-headers-${abi%-cloud-amd64}-common
	series=$(echo "$abi" | cut -d. -f1-2)
}
download() {
	say "fetching $image and the packages that modules are built with"
	(cd "$out/deb" && rm -f ./*.deb && apt-get -q -o Acquire::Retries=3 download "$image" "linux-headers-$abi" "$common" \
		"linux-kbuild-$series" linux-compiler-gcc-12-x86 >/dev/null 2>&1)
}
if [ ! -s "$out/VERSIONS" ]; then
	kernel
	# Package lists that are some days old name a kernel that Debian has replaced.
	download || { say "updating apt's package lists"; apt-get -q update >/dev/null 2>&1 && kernel && download; } ||
		fail "cannot download $image and its headers: run 'apt-get update' as root and look at its errors"
	rm -rf "$out/root" && mkdir "$out/root"
	for d in "$out"/deb/*.deb; do dpkg-deb -x "$d" "$out/root"; done
	rm -rf "$out/module" "$out/vmlinux"
	(cd "$out/deb" && ls ./*.deb) | sed 's|^\./||; s|\.deb$||' > "$out/VERSIONS.tmp"
	mv "$out/VERSIONS.tmp" "$out/VERSIONS"
	rm -f "$out"/deb/*.deb
fi
abi=$(sed -n 's/^linux-image-\([^_]*\)_.*/\1/p' "$out/VERSIONS")

# QEMU can load the kernel unpacked (PVH), so that no guest unpacks it at every boot. Where
# it lies is in the image's header (Linux's Documentation/arch/x86/boot.rst: setup_sects at
# 0x1f1, payload_offset at 0x248, payload_length at 0x24c, with the unpacked length as its
# last 4 bytes).
if [ ! -s "$out/vmlinux" ]; then
	packed=$out/root/boot/vmlinuz-$abi
	field() { od -A n -t "u$2" -j "$1" -N "$2" "$packed" | tr -d ' '; } # offset bytes
	start=$((($(field 0x1f1 1) + 1) * 512 + $(field 0x248 4) + 1))
	if ! tail -c "+$start" "$packed" | head -c "$(($(field 0x24c 4) - 4))" | lz4 -dq - "$out/vmlinux.tmp" 2>/dev/null ||
		! readelf -n "$out/vmlinux.tmp" 2>/dev/null | grep -q Xen; then
		say "$packed is no LZ4 image that can be loaded unpacked: guests unpack it, which takes them a second"
		cp "$packed" "$out/vmlinux.tmp"
	fi
	mv "$out/vmlinux.tmp" "$out/vmlinux"
fi

# 2. The modules: PMU, resctrl, and one for virtio devices. Built in a copy: kbuild writes next to its sources.
newest=$(ls -t lab/pmu/* lab/resctrl/* lab/virtio/* lab/include/* | head -n 1)
if [ ! -s "$out/homenode_virtio.ko" ] || [ "$newest" -nt "$out/homenode_virtio.ko" ]; then
	say "building the modules for $abi"
	rm -rf "$out/module" && mkdir "$out/module"
	cp -r lab/pmu lab/resctrl lab/virtio lab/include "$out/module/"
	echo "obj-m := pmu/ resctrl/ virtio/" > "$out/module/Kbuild"
	# The headers name where they are; this folder may have been moved.
	sed -i "s|[^ ]*/usr/src/|$out/root/usr/src/|" "$out/root/usr/src/linux-headers-$abi/Makefile"
	make -s -C "$out/root/usr/src/linux-headers-$abi" M="$out/module" modules > "$out/module.log" 2>&1 ||
		{ cat "$out/module.log" >&2; fail "the modules do not build: see above"; }
	cp "$out/module/pmu/homenode_pmu.ko" "$out/module/resctrl/homenode_resctrl.ko" "$out/module/virtio/homenode_virtio.ko" "$out/"
fi

# 3. The plugin and the load program.
make -s -C lab/plugin OUT="$out"
make -s -C lab/workload OUT="$out"

# 4. The initramfs (uncompressed: gunzip is slow under TCG). homenode itself is
# added per boot, as a second archive.
modules="virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk virtio_console virtio-rng"
newest=$(ls -t lab/guest/init lab/guest/cpuinfo/* lab/build.sh "$out"/homenode_*.ko "$out/homenode-load" | head -n 1)
if [ ! -s "$out/initramfs.cpio" ] || [ "$newest" -nt "$out/initramfs.cpio" ]; then
	say "packing the guest"
	fs=$out/fs
	rm -rf "$fs" && mkdir -p "$fs/bin" "$fs/sbin" "$fs/usr/bin" "$fs/modules" "$fs/proc" "$fs/sys" "$fs/dev" "$fs/etc"
	cp lab/guest/init "$fs/init"
	cp -r lab/guest/cpuinfo "$fs/cpuinfo"
	cp /bin/busybox "$fs/bin/busybox"
	cp "$out/homenode-load" "$fs/bin/"
	cp "$out/homenode_virtio.ko" "$fs/modules/" && echo homenode_virtio > "$fs/modules/order"
	for m in $modules; do
		ko=$(find "$out/root/lib/modules/$abi/kernel/drivers" -name "$m.ko")
		[ -n "$ko" ] || continue # built in
		# Without its signature: the guest's kernel takes a second to check one.
		objcopy "$ko" "$fs/modules/$m.ko" && echo "$m" >> "$fs/modules/order"
	done
	cp "$out/homenode_pmu.ko" "$fs/modules/" && echo homenode_pmu >> "$fs/modules/order"
	cp "$out/homenode_resctrl.ko" "$fs/modules/" # loaded by who wants it
	numad=$(command -v numad || true)
	if [ -n "$numad" ]; then # a peer of the demonstration
		cp "$numad" "$fs/bin/"
		ldd "$numad" | sed -n 's/^.*[[:space:]]\(\/[^ ]*\) .*/\1/p' | while read -r lib; do
			mkdir -p "$fs$(dirname "$lib")" && cp -L "$lib" "$fs$lib"
		done
	fi
	(cd "$fs" && find . | cpio -o -H newc --quiet > "$out/initramfs.cpio.tmp")
	mv "$out/initramfs.cpio.tmp" "$out/initramfs.cpio"
fi
say "ready: $abi, QEMU $(qemu-system-x86_64 --version | sed -n '1s/.*version \([^ ]*\).*/\1/p')"
