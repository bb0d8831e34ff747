#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Puts QEMU 10, which Debian 13 has, beside an installed QEMU 7.2: build/qemu10/qemu, to be
# named in HOMENODE_QEMU. Nothing is installed. On Debian 12 it comes from the suite
# bookworm-backports, from where this machine's own apt gets Debian 12 from. What went in
# is listed in build/qemu10/VERSIONS. What is there is left alone.
set -eu
cd "$(dirname "$0")/.."
out=$PWD/build/qemu10
qemu=$out/qemu

say() { echo "qemu10: $*"; }
fail() { echo "qemu10: $*" >&2; exit 1; }
version() { "$1" --version 2>&1 | sed -n '1s/.*version \([^ ]*\).*/\1/p'; }
check() { # the wrapper runs, and is of the version that is wanted
	case $(version "$qemu") in
	10.*) say "ready: QEMU $(version "$qemu"), build/qemu10/qemu" ;;
	*) rm -f "$out/VERSIONS"; fail "$qemu is not QEMU 10: its version is '$("$qemu" --version 2>&1 | head -n 1)'" ;;
	esac
}
wrap() { # program, its options: a program that becomes QEMU, so that it has its process id
	{ printf '#!/bin/sh\n'; printf '%s\n' "$env"; printf 'exec %s "$@"\n' "$*"; } > "$qemu"
	chmod +x "$qemu"
}
if [ -s "$out/VERSIONS" ] && [ -x "$qemu" ]; then
	check
	exit 0
fi
rm -rf "$out"
mkdir -p "$out/apt/lists/partial" "$out/apt/archives/partial"
env=

# 1. It may be what this machine has: Debian 13 does.
installed=$(command -v qemu-system-x86_64 || true)
if [ -n "$installed" ] && case $(version "$installed") in 10.*) ;; *) false ;; esac; then
	wrap "$installed"
	version "$installed" > "$out/VERSIONS"
	check
	exit 0
fi

# 2. Where Debian 12 comes from, and its backports beside it.
sources() {
	apt-get indextargets --format '$(ORIGIN) deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
		sed -n 's/^Debian \(deb .* bookworm[^ ]* main\)$/\1/p' | sort -u
}
list=$(sources)
[ -n "$list" ] || { apt-get -q update >/dev/null 2>&1 && list=$(sources); }
suite=$(echo "$list" | sed -n 's/ bookworm main$/ bookworm-backports main/p' | head -n 1)
[ -n "$suite" ] || fail "this machine's apt knows no Debian 12 (bookworm): install QEMU 10, or name its qemu-system-x86_64 in HOMENODE_QEMU"
printf '%s\n' "$list" "$suite" | sort -u > "$out/apt/sources.list"

# 3. QEMU and the libraries that this machine lacks or has in an older version. Lists and
# archives are in folders of our own, without what this machine runs after an update: its
# apt stays as it is.
echo '#clear APT::Update::Post-Invoke; #clear APT::Update::Post-Invoke-Success;' > "$out/apt/apt.conf"
apt() {
	apt-get -q -c "$out/apt/apt.conf" -o Dir::Etc::sourcelist="$out/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::lists="$out/apt/lists" -o Dir::Cache::archives="$out/apt/archives" \
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Debug::NoLocking=true -o Acquire::Retries=3 "$@"
}
say "fetching QEMU from bookworm-backports (log in build/qemu10/log)"
{ apt update && apt -y --no-install-recommends --download-only -t bookworm-backports install qemu-system-x86; } > "$out/log" 2>&1 ||
	{ tail -n 5 "$out/log" >&2; fail "cannot fetch it: see above"; }
for d in "$out"/apt/archives/*.deb; do
	[ -e "$d" ] || fail "apt fetched no package: see build/qemu10/log"
	dpkg-deb -x "$d" "$out/root"
	dpkg-deb -W --showformat '${Package}_${Version}_${Architecture}\n' "$d" >> "$out/VERSIONS.tmp"
done
rm -rf "$out/apt"

# 4. It runs from there, with its own firmware, modules and libraries.
lib=$out/root/usr/lib/x86_64-linux-gnu
env="QEMU_MODULE_DIR='$lib/qemu' LD_LIBRARY_PATH='$lib:$out/root/lib/x86_64-linux-gnu'
export QEMU_MODULE_DIR LD_LIBRARY_PATH"
wrap "'$out/root/usr/bin/qemu-system-x86_64'" -L "'$out/root/usr/share/qemu'" -L "'$out/root/usr/share/seabios'"
mv "$out/VERSIONS.tmp" "$out/VERSIONS"
check
