#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rao's mixes in the lab, as far as it holds them: the default, homenode brm, brm --hold
# and by hand, in turns, by the model's clock: build/bench/brm.json. An hour at 3
# repeats; the host should have nothing else to do.
#   REPEATS=3  ONLY=part-of-a-name
exec "$(dirname "$0")/bench-by-test.sh" BRM
