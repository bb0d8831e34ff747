#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rao's mixes in the lab, as far as it holds them: the default, homenode brm, brm --hold
# and by hand, in turns: build/bench/brm.json. A busy host makes it longer and not
# different.
#   REPEATS=3  ONLY=part-of-a-name
exec "$(dirname "$0")/bench-by-test.sh" BRM
