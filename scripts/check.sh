#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Format, vet, unit tests without the lab, goldens clean.
set -eu
cd "$(dirname "$0")/.."
bad=$(gofmt -l cmd internal lab/shapes)
[ -z "$bad" ] || { echo "check: run gofmt -w on: $bad" >&2; exit 1; }
go vet ./...
go test -short ./...
[ -z "$(git status --porcelain -- '*.golden' testdata schema 2>/dev/null)" ] ||
	{ echo "check: golden files differ from the commit: 'git diff' shows them" >&2; exit 1; }
echo "check: fine"
