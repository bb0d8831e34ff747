#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Profiles eight real programs in the lab (8 nodes of 2 CPUs, 4 vCPUs), and compares a model
# that learned in the simulator, on that machine, with the noise of two measurements. Then it
# places a workload by that model. It needs 'make build' and 'make lab'.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/models
model=build/models/lab-opteron.json
build/homenode-lab sim placements --shape opteron --vcpus 4 --dataset build/models/lab-opteron.parquet > build/models/lab-opteron.log
scripts/model.sh train build/models/lab-opteron.parquet --model $model --card build/models/lab-opteron.html
HOMENODE_PROFILE_MODEL=$PWD/$model go test -count=1 -timeout 90m -run 'TestLab(ProfilePrograms|ProfileWorkload|Place)$' -v ./internal/lab
