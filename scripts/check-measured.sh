#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares homenode's models with figures that others measured on real machines
# (../shared/facts/measured, or the folder HOMENODE_MEASURED), and prints the tables with
# errors. With --update it writes docs/results/measured.md. Missing figures are a failure, and
# so is a target that is not met.
set -eu
cd "$(dirname "$0")/.."
update=
[ "${1:-}" != --update ] || update=-update
exec env CI=true HOMENODE_TARGETS=1 go test -count=1 -v -run 'TestMeasured|TestComputeOnlyIsSheep' ./internal/papers/measured ${update:+-args $update}
