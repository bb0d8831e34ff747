#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes docs/reference/exit-codes.md from the commands of the programs, built before. A test
# of each program holds its table, and every test of a command line the code that it ends with.
set -eu
cd "$(dirname "$0")/.."
{
	cat <<'END'
# Exit codes

Written by `make reference` from the commands; `--help` of a command has its own. A command that is not listed has the codes of every command, and no others. With a signal (Ctrl-C, a closed pipe) a program ends as the signal has it.

END
	build/documented/homenode reference --exit-codes
	echo
	build/documented/homenode-hub reference --exit-codes
	echo
	build/documented/homenode-lab reference --exit-codes
} > docs/reference/exit-codes.md
