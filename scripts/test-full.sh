#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every count that the issues ask for, in pieces. build/test-full records each piece that
# passed for this commit, so that an interrupted run continues where it stopped. The result,
# with commit and seed, is build/test-full/RESULT.
set -u
cd "$(dirname "$0")/.." || exit
out=build/test-full
mkdir -p "$out"
commit=$(git describe --always --dirty)
seed=${HOMENODE_KILL_SEED:-$(date +%j)}
[ "$(cat "$out/commit" 2>/dev/null)" = "$commit" ] || { rm -rf "$out" && mkdir -p "$out" && echo "$commit" > "$out/commit" && echo "$seed" > "$out/seed"; }
seed=$(cat "$out/seed")
failed=0

piece() { # name, command…
	name=$1
	shift
	if [ -e "$out/$name.passed" ]; then
		echo "test-full: $name passed before"
		return
	fi
	echo "test-full: $name"
	start=$(date +%s)
	if "$@" > "$out/$name.log" 2>&1; then
		echo "$name passed in $(($(date +%s) - start)) s: $(grep -h 'goldens are\|kill points\|targets\|cases of the doctor\|figures compared\|boots answered\|flips at\|steps while it bound\|of CPU time a round\|qemu10: ready\|Debian answered\|programs: the model' "$out/$name.log" | tr '\n' ' ')" | tee "$out/$name.passed"
	else
		failed=1
		echo "test-full: $name FAILED, see $out/$name.log" >&2
		tail -n 20 "$out/$name.log" >&2
	fi
}

export CI=true HOMENODE_KILL_SEED="$seed"
piece usual scripts/test.sh
piece kill-v2 env HOMENODE_KILL_POINTS=100 go test -count=1 -timeout 60m -run TestLabKilledAgentLeavesNothing/v2 -v ./internal/lab
piece kill-v1 env HOMENODE_KILL_POINTS=100 go test -count=1 -timeout 60m -run TestLabKilledAgentLeavesNothing/v1 -v ./internal/lab
piece drift env HOMENODE_HOSTILE=1 HOMENODE_KILL_POINTS=100 go test -count=1 -timeout 180m -run TestLabKilledBesideAnotherWriter -v ./internal/lab
piece freeze-v2 env HOMENODE_KILL_POINTS=100 go test -count=1 -timeout 120m -run TestLabFrozenIsThawed/v2 -v ./internal/lab
piece freeze-v1 env HOMENODE_KILL_POINTS=100 go test -count=1 -timeout 120m -run TestLabFrozenIsThawed/v1 -v ./internal/lab
piece moves env HOMENODE_KILL_POINTS=20 go test -count=1 -timeout 120m -run 'TestLabMigrate(Churn|Killed)' -v ./internal/lab
piece browser env HOMENODE_BROWSER=1 go test -count=1 -timeout 20m -run Browser -v ./internal/hub/page
piece hub env HOMENODE_KILL_POINTS=100 go test -count=1 -timeout 60m -run TestKilledAnywhere -v ./cmd/homenode-hub
piece simulated env HOMENODE_SIM_HOSTS=200 go test -count=1 -timeout 20m -run TestSimulatedFleet -v ./cmd/homenode-hub
piece seeds env HOMENODE_SEEDS=all go test -count=1 -timeout 60m -v ./internal/sim/memsys ./internal/sim/threadworld ./internal/sim/catalog ./internal/journal ./internal/policy/... ./internal/actuate
piece parity env HOMENODE_PARITY=all go test -count=1 -timeout 60m -run TestLabParity -v ./internal/lab
for part in 1 2 3 4 5; do # 300 boots
	piece "boots-$part" env HOMENODE_BOOTS=60 go test -count=1 -timeout 60m -run TestLabBoots -v ./internal/lab
done
piece suspend env HOMENODE_SUSPEND=1 go test -count=1 -timeout 20m -run TestLabSuspended -v ./internal/lab
piece clock env HOMENODE_HOSTILE=1 go test -count=1 -timeout 60m -run TestLabClockSteps -v ./internal/lab
piece hostile scripts/test-hostile.sh
piece arm64 scripts/test-arm64.sh
piece journal env HOMENODE_FLIPS=1000000 go test -count=1 -timeout 120m -run TestManyFlips -v ./internal/journal
piece doctor env HOMENODE_DOCTOR=all go test -count=1 -timeout 60m -run TestLabDoctor -v ./internal/lab
piece deploy env HOMENODE_DEPLOY=all go test -count=1 -timeout 60m -run 'TestLabExperiment$' -v ./internal/lab
piece hotplug env HOMENODE_HOTPLUG=1 go test -count=1 -timeout 60m -run TestLabHotplug -v ./internal/lab
piece personalities env HOMENODE_PERSONALITIES=all go test -count=1 -timeout 60m -run 'TestLab(Personalities|LooksAlike|.*Like|HiddenRegisters|TwoReadersOf|GroupTooLarge)' -v ./internal/lab
piece packages sh -c 'make packages && scripts/test-packages.sh --twice'
piece resctrl env HOMENODE_RESCTRL=1 go test -count=1 -timeout 60m -run TestLabResctrl -v ./internal/lab
piece debian sh -c 'make lab-debian && HOMENODE_DEBIAN=1 go test -count=1 -timeout 60m -run TestLabDebian -v ./internal/lab'
piece fleet sh -c 'make lab-debian packages && HOMENODE_FLEET=1 go test -count=1 -timeout 60m -parallel 3 -run "TestLabDebian(Fleet|Hub)" -v ./internal/lab'
piece qemu10 sh -c 'lab/qemu10.sh && HOMENODE_QEMU=$PWD/build/qemu10/qemu go test -count=1 -timeout 60m -run "TestLab(Counts|OneClock|Suspended|Links|Handoff|SMT|Flushes|RefusesWrongNodeMap|RefusesMemory)" -v ./internal/lab'
piece strategies env HOMENODE_STRATEGIES=all go test -count=1 -timeout 60m -run TestStrategyB -v ./internal/sim/runner
piece rollouts env HOMENODE_ROLLOUTS=200 go test -count=1 -v ./internal/sim/rollouts
piece measured scripts/check-measured.sh
piece model scripts/model.sh test
piece profile scripts/bench-profile.sh
piece spark scripts/model.sh spark
piece prometheus scripts/test-prometheus.sh
piece clickhouse env HOMENODE_KILL_POINTS=100 scripts/test-clickhouse.sh
piece fuzz env FUZZLONG=1 scripts/fuzz.sh
{
	echo "commit $commit, seed $seed, $(date -u +%Y-%m-%dT%H:%MZ)"
	cat "$out"/*.passed
} > "$out/RESULT"
cat "$out/RESULT"
exit $failed
