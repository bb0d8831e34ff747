#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What NUMA balancing and numad reach with more time: the demonstration's mix
# with 120 model-seconds of warm-up. Once per release: an hour or more.
#   scripts/bench-peers.sh    MIX=first-light  REPEATS=3  WARMUP=120
# The result is build/bench/peers.json. 'homenode-lab demo' shows it beside its table
# once it is committed as lab/mixes/NAME-peers.json.
set -eu
cd "$(dirname "$0")/.."
mix=${MIX:-first-light}
build/homenode-lab demo --mix "$mix" --arms numa-balancing,numad --warmup "${WARMUP:-120}" --repeats "${REPEATS:-3}" --out build/bench/peers
# The movers' output is long; it is in build/bench/peers.
python3 - build/bench/peers/demo.json build/bench/peers.json <<'PY'
import json, os, sys
c = json.load(open(sys.argv[1]))
for arm in c["arms"]:
    arm.pop("detail", None)
with open(sys.argv[2] + ".new", "w") as f:
    json.dump(c, f, indent=1, ensure_ascii=False)
    f.write("\n")
os.rename(sys.argv[2] + ".new", sys.argv[2])
PY
echo "bench-peers: to show it beside the demonstration: cp build/bench/peers.json lab/mixes/$mix-peers.json, and commit it"
