#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what 'make check' lints with: Go tools into build/bin, at the versions
# named here; MkDocs and clang-format into build/venv, at those of
# scripts/requirements.txt; shellcheck and Python's venv from Debian 12.
set -eu
cd "$(dirname "$0")/.."
fail() { echo "tools: $*" >&2; exit 2; }

golangci=github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.9.0

packages=
command -v shellcheck >/dev/null 2>&1 || packages="$packages shellcheck"
python3 -c 'import ensurepip' 2>/dev/null || packages="$packages python3-venv"
if [ -n "$packages" ]; then
	{ grep -qs '^ID=debian' /etc/os-release && [ "$(id -u)" = 0 ]; } ||
		fail "missing:$packages (Debian's names): install them, or run this as root on Debian 12"
	echo "tools: installing$packages"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q -o Acquire::Retries=3 update >/dev/null || fail "apt-get update failed: look at its errors above"
	# shellcheck disable=SC2086
	apt-get -q -o Acquire::Retries=3 install -y --no-install-recommends $packages >/dev/null ||
		fail "apt-get install$packages failed: look at its errors above"
fi

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$(python3 --version) is too old: install Python 3.11 or newer"
# Its programs name the folder that they were installed into, and it may have been moved.
if ! cmp -s scripts/requirements.txt build/venv/installed.txt || ! build/venv/bin/mkdocs --version >/dev/null 2>&1; then
	echo "tools: installing MkDocs and clang-format into build/venv"
	rm -rf build/venv
	python3 -m venv build/venv
	build/venv/bin/pip install -q --no-deps -r scripts/requirements.txt ||
		fail "pip could not install the packages of scripts/requirements.txt: look at its errors above"
	cp scripts/requirements.txt build/venv/installed.txt
fi

# A tool that an older Go built cannot read this Go's packages, so the stamp names both.
for tool in "$golangci" "$govulncheck"; do
	name=${tool%@*}
	name=${name##*/}
	stamp="$tool $(go env GOVERSION)"
	[ -x "build/bin/$name" ] && [ "$(cat "build/bin/$name.version" 2>/dev/null)" = "$stamp" ] && continue
	echo "tools: building $tool"
	mkdir -p build/bin
	GOBIN="$PWD/build/bin" go install "$tool" || fail "go install $tool failed: look at its errors above"
	echo "$stamp" >"build/bin/$name.version"
done
