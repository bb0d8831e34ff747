#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Classes (sheep, rabbit, devil) of real programs, busybox's, in the lab: slowdowns beside
# the references and with remote memory, as animal.Slowdowns defines them, against what
# is inferred from windows: build/bench/classes.json. All is modelled but the programs.
# A busy host makes it longer, not different.
#   REPEATS=3  ONLY=part-of-a-name
exec "$(dirname "$0")/bench-by-test.sh" Classes
