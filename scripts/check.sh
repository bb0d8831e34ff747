#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Before a commit: linters, documents, unit tests without the lab, goldens clean.
set -eu
cd "$(dirname "$0")/.."
scripts/lint.sh
go test -short ./...
[ -z "$(git status --porcelain -- '*.golden' testdata schema 2>/dev/null)" ] ||
	{ echo "check: golden files differ from the commit: 'git diff' shows them" >&2; exit 1; }
echo "check: fine"
