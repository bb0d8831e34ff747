#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The difference between two equal runs: the demonstration's load under Linux alone and placed
# by hand, with one seed. The second run of each pair has two busy loops beside it on the
# host. Bound services may differ by 3 % at most: build/bench/pairs.json. It continues after
# an interruption; FRESH=1 starts again.
#   PAIRS=10  MIX=first-light  WARMUP=4
set -eu
cd "$(dirname "$0")/.."
out=build/bench/pairs
[ -z "${FRESH:-}" ] || rm -rf "$out"
mkdir -p "$out"
loops=
trap '[ -z "$loops" ] || kill $loops' EXIT INT TERM
one() { # name
	[ -s "$out/$1/demo.json" ] && return
	build/homenode-lab demo --mix "${MIX:-first-light}" --arms linux,by-hand --repeats 1 --warmup "${WARMUP:-4}" \
		--out "$out/$1" > "$out/$1.log" 2>&1 || [ -s "$out/$1/demo.json" ] || { cat "$out/$1.log"; exit 1; }
}
for i in $(seq "${PAIRS:-10}"); do
	echo "bench-pairs: pair $i of ${PAIRS:-10}"
	one "$i-alone"
	for _ in 1 2; do
		sh -c 'while :; do :; done' &
		loops="$loops $!"
	done
	one "$i-beside"
	# shellcheck disable=SC2086
	kill $loops
	loops=
done
python3 - "$out" <<'PY'
import glob, json, os, statistics, sys
out, apart, runs = sys.argv[1], {}, {}
for beside in sorted(glob.glob(out + "/*-beside")):
    pair = []
    for folder in (beside.replace("-beside", "-alone"), beside):
        with open(folder + "/runs.jsonl") as f:
            pair.append({(r["arm"], s["name"]): s["ops_per_model_s"] for r in map(json.loads, f) for s in r["services"]})
    for key, a in pair[0].items():
        b = pair[1][key]
        apart.setdefault(key, []).append(abs(a - b) / max(a, b))
        runs.setdefault(key, []).extend((a, b))
table = [{"arm": arm, "workload": name, "pairs": len(d), "median": statistics.median(d), "most": max(d),
          "least_ops_per_model_s": min(runs[arm, name]), "most_ops_per_model_s": max(runs[arm, name])}
         for (arm, name), d in sorted(apart.items())]
with open(out + ".json", "w") as f:
    json.dump({"known": "modelled (lab)", "apart": table}, f, indent=1)
bad = False
for r in table:
    late = r["arm"] == "by-hand" and r["most"] > 0.03
    bad |= late
    print(f'{r["arm"]:8} {r["workload"]:10} {r["pairs"]} pairs: median {r["median"]:.2%} apart, most {r["most"]:.2%}'
          + (" (limit 3 %: NOT MET)" if late else ""))
sys.exit(bad)
PY
