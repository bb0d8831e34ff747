#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rao's mixes in the lab, those that fit: the default, homenode pin, pin --hold
# and by hand, in turns: build/bench/brm.json. A busy host makes it longer, not different.
#   REPEATS=3  ONLY=part-of-a-name
exec "$(dirname "$0")/bench-by-test.sh" BRM
