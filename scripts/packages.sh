#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes what a release consists of, in build/packages: packages, tarballs, images, SBOMs and
# checksums. The version and all times come from the commit (scripts/version.sh), so the
# same commit gives the same bytes. scripts/test-packages.sh checks the result.
set -eu
cd "$(dirname "$0")/.."
out=${1:-$PWD/build/packages}
mkdir -p build
version=$(scripts/version.sh)
epoch=$(scripts/version.sh --epoch)
echo "packages: building version $version"
source=$PWD
(cd scripts/packages && go build -o "$source/build/packages-tool" .)
build/packages-tool -source "$source" -out "$out" -version "$version" -epoch "$epoch"
(cd "$out" && ls -l | awk 'NR > 1 { printf "packages: %8d kB  %s\n", ($5 + 999) / 1000, $9 }')
echo "packages: ready in $out"
