# SPDX-License-Identifier: Apache-2.0
# Two commands are enough: `make demo` and `make test`. Both install what they
# need on Debian 12; elsewhere they name what is missing.
GO ?= go
export GOTOOLCHAIN ?= local
# -trimpath: another clone of the same commit finds what this one has compiled. It is added to
# flags of the environment: without it every clone compiles all packages anew.
export GOFLAGS := -buildvcs=false -trimpath $(GOFLAGS)
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)

.PHONY: all setup tools man reference packages docs lab lab-debian lab-qemu10 build check test test-full fuzz demo demo-pilot demo-loop readme-table bench bench-peers bench-migrate bench-sim bench-optimizer bench-unbind bench-brm bench-classes bench-sim-parity bench-arena bench-count bench-agent bench-observe bench-placements bench-store bench-fleet bench-gain model clean

all: build

setup: ## install what is missing, and say so
	@scripts/setup.sh

tools: setup ## install what check lints with
	@scripts/tools.sh

build: build/homenode build/homenode-hub build/homenode-lab ## the programs: what a host has, what a fleet has, lab and simulator

# The version is part of the binary: another commit is another binary.
build/version: FORCE
	@mkdir -p build
	@echo '$(VERSION)' | cmp -s - $@ || echo '$(VERSION)' > $@
FORCE:

# Static and without symbols for debuggers: the same programs run in the lab's guest.
build/homenode build/homenode-hub build/homenode-lab &: build/version $(shell find cmd internal lab/shapes -name '*.go' -not -name '*_test.go' 2>/dev/null) $(wildcard lab/shapes/*.yaml) go.mod go.sum
	@mkdir -p build
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X homenode/internal/cli.Version=$(VERSION)' -o build/ ./cmd/homenode ./cmd/homenode-hub ./cmd/homenode-lab

# The programs with the command that documents them: it is in no program that is installed.
.PHONY: documented
documented: build/version
	@CGO_ENABLED=0 $(GO) build -tags reference -ldflags '-X homenode/internal/cli.Version=$(VERSION)' -o build/documented/ ./cmd/homenode ./cmd/homenode-hub ./cmd/homenode-lab

man: documented ## man pages of the programs: build/man
	@for p in homenode homenode-hub homenode-lab; do build/documented/$$p reference --man build/man || exit 1; done

reference: documented ## docs/reference: the commands, their flags, exit codes and the configuration; schema; deploy/etc/agent.yaml
	@build/documented/homenode reference > docs/reference/cli.md && build/documented/homenode-hub reference > docs/reference/hub.md && build/documented/homenode-lab reference > docs/reference/lab.md
	@scripts/exit-codes.sh
	@for p in homenode homenode-hub homenode-lab; do build/documented/$$p reference --schemas schema || exit 1; done
	@$(GO) test ./internal/agent -run 'TestConfigReference|TestPackagedConfig$$' -update

packages: ## deb, rpm, tarball, image, SBOM and checksums of amd64 and arm64: build/packages
	@scripts/packages.sh

docs: tools ## the documentation as a site: build/docs/index.html
	@scripts/docs.sh

# Machine, vCPUs and the error to reach (Funston et al.: 4.4 % on eight nodes, 6.6 % on four).
model: build ## models of placements of the two machines of Funston et al., trained in the simulator: build/models
	@mkdir -p build/models
	@set -e; for each in 'opteron-6272 16 0.044' 'quad-e7-4830 24 0.066'; do \
		set -- $$each; \
		build/homenode-lab sim placements --machine $$1 --vcpus $$2 --dataset build/models/$$1.parquet; \
		scripts/model.sh train build/models/$$1.parquet --target $$3 --model build/models/$$1.json --card build/models/$$1.html; \
	done

lab: setup ## build the lab into build/lab
	@lab/build.sh

lab-debian: lab ## build the lab's second guest: Debian with systemd and containerd
	@lab/debian.sh

lab-qemu10: setup ## put QEMU 10 beside the installed one: build/qemu10/qemu, for HOMENODE_QEMU
	@lab/qemu10.sh

check: tools ## format, vet, linters, documents, unit tests, goldens clean
	@scripts/check.sh

test: setup lab build ## linters, documents, unit, golden, short fuzz, one lab boot per shape; what CI runs
	@scripts/test.sh

test-full: setup lab build ## every count the issues ask for; resumable, result stored
	@scripts/test-full.sh

fuzz: setup ## every fuzz target for FUZZTIME (default 30s) each
	@scripts/fuzz.sh

demo: setup lab build ## the demonstration: build/demo/demo.json and demo.html
	@build/homenode-lab demo

demo-pilot: setup lab build ## what warm-up and repeats a mix should have: before its first comparison
	@build/homenode-lab demo --pilot

demo-loop: setup build ## MAO's loop on simulated hosts: trials, a model, rollouts, proof: build/loop/loop.html
	@scripts/demo-loop.sh

readme-table: ## put the last demonstration's tables and picture into docs/results/demo.md, its sentences into README.md
	@scripts/readme-demo.sh

# All but what adds to recorded data (sim-parity, estimate) and moving memory.
BENCHES = peers stat sim optimizer agent count observe lab unbind brm classes arena placements store fleet gain

bench: demo ## the demonstration's ratios, then every bench-NAME of BENCHES: hours; one that misses a target does not stop the others
	@bad=; for name in $(BENCHES); do scripts/bench-$$name.sh || bad="$$bad $$name"; done; \
	[ -z "$$bad" ] || { echo "bench: a target is not met, or it could not run:$$bad"; exit 1; }

bench-peers: setup lab build ## what peers reach after 120 model-seconds of warm-up, once per release: build/bench/peers.json
	@scripts/bench-peers.sh

bench-sim: build ## speed and memory of a simulated fleet: build/bench/sim.json
	@scripts/bench-sim.sh

bench-optimizer: ## how long a round of the optimizer takes, and the paper's Fig. 6: build/bench/optimizer.json
	@scripts/bench-optimizer.sh

bench-unbind: setup lab build ## the paper's Fig. 6 in the lab, strategies A and B of the agent itself: build/bench/unbind-lab.json
	@scripts/bench-unbind.sh

bench-brm: setup lab build ## Rao's mixes in the lab: the default, BRM and by hand: build/bench/brm.json
	@scripts/bench-brm.sh

bench-classes: setup lab build ## slowdowns of real programs in the lab against classes inferred from counters: build/bench/classes.json
	@scripts/bench-classes.sh

bench-migrate: setup lab build ## moving memory: homenode against the kernel's own ways, in the lab and on a NUMA host
	@scripts/bench-migrate.sh

bench-sim-parity: setup lab build ## what the simulated machine is held to, measured in the lab: adds what is missing to internal/sim/parity/testdata
	@scripts/bench-sim-parity.sh

bench-count: build ## what counting events per cgroup costs at context switches: build/bench/count.json
	@scripts/bench-count.sh

bench-arena: build ## all policies on all machines, the papers' experiments, and the targets: build/bench/arena.html
	@scripts/bench-arena.sh

bench-store: ## the status database: a month of a host in SQLite, five million windows in ClickHouse: build/bench/store.log
	@scripts/bench-store.sh

bench-fleet: ## the fleet's page over stores of 100,000 hosts: build/bench/fleet.log
	@scripts/bench-fleet.sh

bench-gain: build ## the model of gains against its targets: build/bench/gain.html
	@scripts/bench-gain.sh

bench-placements: build ## placements: listing, predicting, packing by goal: build/bench/placements.json
	@scripts/bench-placements.sh

bench-agent: build ## memory of the agent after a day of windows: build/bench/agent.json
	@scripts/bench-agent.sh

bench-observe: build ## CPU time of observing 50 workloads, against cAdvisor: build/bench/observe.json
	@scripts/bench-observe.sh

clean:
	rm -rf build
