#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the documentation site into build/docs. A broken link or anchor fails:
# in docs/ MkDocs says so, elsewhere scripts/check-links.py. Links to other
# sites are not followed.
set -eu
cd "$(dirname "$0")/.."
mkdocs=build/venv/bin/mkdocs
[ -x "$mkdocs" ] || { echo "docs: no $mkdocs: run 'make docs', which installs it" >&2; exit 2; }
python3 scripts/check-links.py
NO_MKDOCS_2_WARNING=1 "$mkdocs" build --strict
echo "docs: build/docs/index.html"
