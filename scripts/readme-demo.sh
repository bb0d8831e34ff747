#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Puts the last demonstration's tables and picture into docs/results/demo.md, and
# its first sentences into README.md, unchanged.
#   scripts/readme-demo.sh [DEMO.md]
set -eu
cd "$(dirname "$0")/.."
fail() { echo "readme-demo: $*" >&2; exit 2; }

demo=${1:-build/demo/demo.md}
[ -s "$demo" ] || fail "no $demo: run 'make demo' first"
commit=$(sed -n 's/^- commit: //p' "$demo")
case $commit in
'') fail "$demo names no commit: run 'make demo' in a git checkout" ;;
*-dirty) fail "$demo was made from a tree with changes that no commit has: commit them and run 'make demo' again" ;;
esac
git cat-file -e "$commit^{commit}" 2>/dev/null || fail "$demo names commit $commit, which is not in this repository: run 'make demo' again"

# put FILE: puts standard input between FILE's two marks.
put() {
	for mark in '<!-- demo -->' '<!-- /demo -->'; do
		[ "$(grep -cxF -- "$mark" "$1")" -eq 1 ] || fail "$1 needs one line $mark"
	done
	cat >"$1.new"
	awk -v new="$1.new" '
		/^<!-- demo -->$/ { print; print ""; while ((getline line < new) > 0) print line; print ""; skip = 1 }
		/^<!-- \/demo -->$/ { skip = 0 }
		!skip { print }' "$1" >"$1.tmp"
	mv "$1.tmp" "$1"
	rm "$1.new"
}

put docs/results/demo.md <"$demo"
# The first paragraph, a sentence a line, as a list.
{
	sed '/^$/,$d; s/^/- /' "$demo"
	printf '\nCommit %s, %s, %s.\n' "$commit" "$(sed -n 's/^- date: //p' "$demo")" "$(sed -n 's/^- mix: /mix /p' "$demo")"
} | put README.md

if [ $# -gt 0 ]; then
	echo "readme-demo: docs/images/demo.png is left as it is"
elif command -v chromium >/dev/null; then
	HEIGHT=${HEIGHT:-1160} scripts/picture.sh build/demo/demo.html docs/images/demo.png
else
	echo "readme-demo: no chromium: docs/images/demo.png is still that of another demonstration" >&2
fi
