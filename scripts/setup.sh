#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what the build, the lab and the demonstration need, and says so.
# Debian 12 only; on another distribution it names what is missing.
set -eu
fail() { echo "setup: $*" >&2; exit 2; }

# program:package
need="qemu-system-x86_64:qemu-system-x86 cpio:cpio lz4:lz4 busybox:busybox-static gcc:gcc make:make
numad:numad numastat:numactl git:git dpkg-deb:dpkg readelf:binutils bc:bc python3:python3"
missing='' packages=''
for pair in $need; do
	if ! command -v "${pair%%:*}" >/dev/null 2>&1; then
		missing="$missing ${pair%%:*}" packages="$packages ${pair##*:}"
	fi
done
# busybox must be the static one: it runs alone in the guest.
if command -v busybox >/dev/null 2>&1 && ldd "$(command -v busybox)" >/dev/null 2>&1; then
	missing="$missing busybox-static" packages="$packages busybox-static"
fi
[ -f /usr/include/elf.h ] || { missing="$missing libc-headers" packages="$packages libc6-dev"; }
[ -f /usr/include/libelf.h ] || { missing="$missing libelf.h" packages="$packages libelf-dev"; }

if [ -n "$missing" ]; then
	if ! grep -qs 'VERSION_ID="12"' /etc/os-release || ! grep -qs '^ID=debian' /etc/os-release; then
		fail "missing:$missing. This is not Debian 12: install them with your package manager (Debian's names:$packages)"
	fi
	[ "$(id -u)" = 0 ] || fail "missing:$missing, and this is not root: run 'apt-get install$packages' as root first"
	echo "setup: installing$packages"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q -o Acquire::Retries=3 update >/dev/null || fail "apt-get update failed: look at its errors above"
	# shellcheck disable=SC2086
	apt-get -q -o Acquire::Retries=3 install -y --no-install-recommends $packages >/dev/null ||
		fail "apt-get install$packages failed: look at its errors above"
fi
# The lab fetches the guest's kernel by name: apt's package lists must contain it.
if [ ! -s build/lab/VERSIONS ] && ! apt-cache show linux-image-cloud-amd64 >/dev/null 2>&1; then
	command -v apt-get >/dev/null || fail "no apt-get: the guest's kernel is one of Debian's packages; use a Debian 12 machine"
	echo "setup: updating apt's package lists"
	apt-get -q -o Acquire::Retries=3 update >/dev/null || fail "apt-get update failed: look at its errors above"
fi
want=$(sed -n 's/^go //p' go.mod)
command -v go >/dev/null 2>&1 || fail "no Go: install Go $want or newer from go.dev, and put it in PATH"
have=$(go env GOVERSION | sed 's/^go//')
[ "$(printf '%s\n%s\n' "$want" "$have" | sort -V | head -n 1)" = "$want" ] ||
	fail "Go is $have, the project needs $want or newer: install it from go.dev"
