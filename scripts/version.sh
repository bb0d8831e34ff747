#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the version of the packages, in an order that dpkg and rpm agree on:
#
#   tag v1.2.3             1.2.3
#   5 commits after it     1.2.3+5.0c1d2e3
#   no tag so far          0.0.0~20261124163218.0c1d2e3   (UTC time of the commit)
#   files not committed    as above, with .dirty behind it
#
# With --epoch it prints the time of the commit, in seconds, for SOURCE_DATE_EPOCH.
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" = --epoch ]; then
	exec git log -1 --format=%ct
fi
dirty=
git diff --quiet HEAD -- || dirty=1
if described=$(git describe --tags --long --abbrev=7 --match 'v[0-9]*' 2>/dev/null); then
	commit=${described##*-g}
	rest=${described%-g*}
	count=${rest##*-}
	version=${rest%-*}
	version=${version#v}
	# v1.0.0-rc.1 comes before 1.0.0.
	version=$(echo "$version" | sed 's/-/~/')
	if [ "$count" != 0 ]; then
		version="$version+$count.$commit"
		[ -z "$dirty" ] || version="$version.dirty"
	elif [ -n "$dirty" ]; then
		version="$version+0.dirty"
	fi
else
	version="0.0.0~$(TZ=UTC git log -1 --date=format-local:%Y%m%d%H%M%S --format=%cd.%h --abbrev=7)${dirty:+.dirty}"
fi
echo "$version"
