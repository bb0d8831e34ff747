#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Renders a page to PNG with chromium; installs nothing.
#   scripts/picture.sh IN.html OUT.png
#   WIDTH=1200 HEIGHT=1600 SCHEME=light|dark scripts/picture.sh IN.html OUT.png
set -eu
fail() { echo "picture: $*" >&2; exit 2; }

[ $# -eq 2 ] || fail "usage: scripts/picture.sh IN.html OUT.png"
[ -r "$1" ] || fail "cannot read $1"
command -v chromium >/dev/null 2>&1 || fail "no chromium: apt-get install -y --no-install-recommends chromium fonts-dejavu-core"
case ${SCHEME:-light} in
light) scheme=1 ;;
dark) scheme=0 ;;
*) fail "SCHEME is light or dark, not $SCHEME" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Headless windows are at least 500 px wide; a narrower page is shown in a frame.
cp "$1" "$work/page.html"
width=${WIDTH:-1200} height=${HEIGHT:-1600} url=file://$work/page.html
if [ "$width" -lt 500 ]; then
	printf '<!DOCTYPE html><meta name="color-scheme" content="light dark"><style>body{margin:0}iframe{border:0}</style><iframe width="%s" height="%s" src="page.html"></iframe>' \
		"$width" "$height" >"$work/frame.html"
	url=file://$work/frame.html
fi
# --no-sandbox: chromium refuses root otherwise; the page is ours and runs no script.
chromium --headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update \
	--disable-sync --no-first-run --hide-scrollbars --user-data-dir="$work/profile" \
	--blink-settings=preferredColorScheme=$scheme --window-size="$width,$height" \
	--screenshot="$work/out.png" "$url" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
[ -s "$work/out.png" ] || { cat "$work/log" >&2; echo "picture: chromium left no picture of $1" >&2; exit 1; }
mv "$work/out.png" "$2"
