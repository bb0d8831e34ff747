#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the documentation site into build/docs. A broken link or anchor fails:
# in docs/ MkDocs says so, elsewhere scripts/check-links.py. Links to other
# sites are not followed.
set -eu
cd "$(dirname "$0")/.."
fail() { echo "docs: $*" >&2; exit 2; }

venv=build/docs-venv
python=${PYTHON:-python3}
command -v "$python" >/dev/null || fail "no $python: install Python 3.11 or newer"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$("$python" --version) is too old: install Python 3.11 or newer, or name it with PYTHON="
if ! cmp -s scripts/docs-requirements.txt "$venv/installed.txt"; then
	echo "docs: installing MkDocs into $venv"
	rm -rf "$venv"
	"$python" -m venv "$venv" 2>/dev/null || fail "no Python venv: on Debian run 'apt-get install python3-venv' as root"
	"$venv/bin/pip" install -q --no-deps -r scripts/docs-requirements.txt || fail "pip could not install what scripts/docs-requirements.txt names: look at its errors above"
	cp scripts/docs-requirements.txt "$venv/installed.txt"
fi
"$python" scripts/check-links.py
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --strict
echo "docs: build/docs/index.html"
