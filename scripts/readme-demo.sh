#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Puts the last demonstration's table and picture into README.md, as they came out.
set -eu
cd "$(dirname "$0")/.."
[ -s build/demo/demo.md ] || { echo "readme-demo: no build/demo/demo.md: run 'make demo' first" >&2; exit 2; }
for mark in '<!-- demo -->' '<!-- /demo -->'; do
	[ "$(grep -cxF "$mark" README.md)" -eq 1 ] || { echo "readme-demo: README.md needs one line $mark" >&2; exit 2; }
done
grep -q '^- commit: .*-dirty$' build/demo/demo.md && echo "readme-demo: the table names a commit with changes that are in none: run 'make demo' on a clean tree" >&2
if command -v chromium > /dev/null; then
	HEIGHT=${HEIGHT:-1160} scripts/picture.sh build/demo/demo.html docs/images/demo.png
else
	echo "readme-demo: no chromium: docs/images/demo.png is still that of another demonstration" >&2
fi
awk '
	/<!-- demo -->/ { print; print "\n![The demonstration: local access ratio and throughput by arm](docs/images/demo.png)\n"
		while ((getline line < "build/demo/demo.md") > 0) print line
		skip = 1; next }
	/<!-- \/demo -->/ { skip = 0; print "" }
	!skip { print }' README.md > README.tmp && mv README.tmp README.md
