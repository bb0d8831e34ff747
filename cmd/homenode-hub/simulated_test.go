// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"homenode/internal/agent"
	"homenode/internal/agent/outbox"
	"homenode/internal/hub/ca"
	"homenode/internal/machine"
	"homenode/internal/sim"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/linux"
	"homenode/internal/store"
	"homenode/internal/store/sqlite"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// simulated is a simulated server, from which an agent reads its windows. It adds up what it
// told.
type simulated struct {
	world *sim.World
	told  map[string]told // by workload
}

type told struct {
	windows, cpu, local, reads float64
}

const simulatedPeriod = 10 * time.Second

func newSimulated(seed uint64) (*simulated, error) {
	b, _ := catalog.MachineNamed(catalog.DualSkylake)
	m, y := b.Make()
	w, err := sim.NewWorld(sim.Config{Machine: m, System: y, Linux: linux.DefaultSettings(), Specs: catalog.ServiceMix(m, y, seed), Seed: seed, Start: time.Now().Add(-2 * time.Hour)})
	return &simulated{w, map[string]told{}}, err
}

func (s *simulated) Read(context.Context) (window.Window, error) {
	s.world.Run(simulatedPeriod)
	w := s.world.Window()
	for _, wl := range w.Workloads {
		t := s.told[wl.ID]
		t.windows++
		t.cpu += wl.CPU.V.Or(0) * w.Length.Seconds()
		local, counted := wl.LocalLoads.V.Get()
		remote, both := wl.RemoteLoads.V.Get()
		if counted && both {
			t.local += float64(local)
			t.reads += float64(local) + float64(remote)
		}
		s.told[wl.ID] = t
	}
	return w, nil
}

func (s *simulated) Machine() machine.Machine { return s.world.Config.Machine }

func (*simulated) EventTable() string { return "the simulator" }

func (*simulated) Close() {}

// runAgent runs an agent on a simulated server, and waits until the hub has all.
func (s *simulated) runAgent(ctx context.Context, dir, host string, rounds uint64) error {
	c, err := agent.ParseConfig([]byte("{}"), "")
	if err != nil {
		return err
	}
	c.StateDir = filepath.Join(dir, host)
	c.Hub = outboxOf(dir, host, filepath.Join(dir, host, "spool"))
	log := slog.New(slog.DiscardHandler)
	a, err := agent.New(ctx, agent.Options{Config: c, Rounds: rounds, Log: log, Play: s, PlayToHub: true})
	if err != nil {
		return err
	}
	if err := a.Run(ctx); err != nil {
		return err
	}
	v, _ := a.View()
	if h := v.Status.Hub; v.Status.Rounds != rounds || h == nil || len(h.Dropped) > 0 {
		return fmt.Errorf("%s: %d rounds, hub %+v", host, v.Status.Rounds, h)
	}
	o, err := outbox.New(c.Hub, log, outbox.Clock{})
	if err != nil {
		return err
	}
	defer o.Close()
	for o.Status().Waiting > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// A fleet of simulated servers: the agent's own loop on each, the wire, the hub and its store.
// What the store adds up for each workload is what the simulator told. test-full has 200 hosts.
func TestSimulatedFleet(t *testing.T) {
	hosts, rounds := 8, uint64(20)
	if n, err := strconv.Atoi(os.Getenv("HOMENODE_SIM_HOSTS")); err == nil {
		hosts, rounds = n, 60
	}
	dir := prepare(t, "sqlite: DIR/status.db")
	authority, err := ca.Open(filepath.Join(dir, "ca"), true)
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, "hub "+dir, func(string) {})
	defer h.kill()
	all := make([]*simulated, hosts)
	began := time.Now()
	each, ctx := errgroup.WithContext(t.Context())
	each.SetLimit(8)
	for i := range all {
		each.Go(func() error {
			host := fmt.Sprint("sim-", i)
			pair, err := authority.Pair(host)
			if err = errors.Join(err, os.WriteFile(filepath.Join(dir, host+".pem"), pair, 0o600)); err != nil {
				return err
			}
			if all[i], err = newSimulated(uint64(i)); err != nil {
				return err
			}
			return all[i].runAgent(ctx, dir, host, rounds)
		})
	}
	if err := each.Wait(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	h.kill()
	s, err := sqlite.Open(t.Context(), filepath.Join(dir, "status.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	windows := 0.0
	for i, server := range all {
		windows += sameSums(t, s, fmt.Sprint("sim-", i), server.told)
	}
	t.Logf("%d simulated hosts, %.0f windows in %.1f s", hosts, windows, took.Seconds())
	if windows < float64(hosts)*float64(rounds) {
		t.Errorf("only %.0f windows were compared", windows)
	}
}

func sameSums(t *testing.T, s store.Store, host string, want map[string]told) (windows float64) {
	t.Helper()
	table, err := s.SQL(t.Context(), "SELECT s.workload, sum(windows), sum(cpu_s), sum(local_reads), sum(reads), min(reads_how) FROM windows w JOIN series s ON s.id = w.series WHERE s.host = '"+host+"' GROUP BY s.workload", 100_000)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != len(want) || len(want) == 0 {
		t.Errorf("%s: %d workloads are in the store, want %d", host, len(table.Rows), len(want))
	}
	for _, row := range table.Rows {
		id := fmt.Sprint(row[0])
		w, got := want[id], [4]float64{}
		for i := range got {
			got[i], _ = row[i+1].(float64)
		}
		for i, x := range []float64{w.windows, w.cpu, w.local, w.reads} {
			if math.Abs(got[i]-x) > 1e-9*math.Abs(x) {
				t.Errorf("%s %s: the store has %v, the simulator told %+v", host, id, got, w)
				break
			}
		}
		if how, _ := row[5].(float64); w.reads > 0 && how != float64(unit.HowModelled) {
			t.Errorf("%s %s: its reads are known as %v, want modelled", host, id, row[5])
		}
		windows += got[0]
	}
	return windows
}
