#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries services of drawn mixes in the lab: each is bound and unbound by turns by 'homenode
# experiment'. It adds what is missing to a data set for 'homenode-model gain', and goes on where
# it was stopped. Two guests at a time; a service takes minutes of CPU time.
#   scripts/lab-trials.sh [FILE]    SEEDS=100
set -eu
cd "$(dirname "$0")/.."
file=${1:-build/lab-trials/four.parquet}
mkdir -p "$(dirname "$file")"
case $file in /*) ;; *) file=$PWD/$file ;; esac
HOMENODE_TRIALS=$file HOMENODE_TRIALS_SEEDS=${SEEDS:-100} go test -count=1 -timeout 24h -run 'TestLabTrials$' -v ./internal/lab
