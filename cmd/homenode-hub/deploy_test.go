// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
	"homenode/internal/store"
	"homenode/internal/store/sqlite"
	"homenode/internal/unit"
)

// shopStore has a service "shop" on hosts, with two hours of latency.
func shopStore(t *testing.T, dir string, hosts int) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(dir, "status.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	until := time.Now().UTC().Truncate(time.Minute)
	var all []store.Batch
	for h := range hosts {
		b := store.Batch{Host: fmt.Sprint("host-", h), Run: "made-up", Number: 1}
		for m := range 120 {
			w := store.Window{At: until.Add(-time.Duration(m) * time.Minute), Length: time.Minute, Workload: "/shop", Service: "shop", Owner: "kubelet", CPU: unit.Some(2.0), Latency: unit.Some(0.01), LatencyHow: unit.HowMeasured, CPUHow: unit.HowMeasured, Local: unit.Some(unit.Ratio(0.5)), LocalHow: unit.HowMeasured}
			b.Windows = append(b.Windows, w)
		}
		all = append(all, b)
	}
	if _, err := s.Add(t.Context(), all); err != nil {
		t.Fatal(err)
	}
}

// A service's rollout is planned, started, paused, undone and forgotten, and each step is shown.
func TestDeploy(t *testing.T) {
	dir, config := configIn(t, "")
	shopStore(t, dir, 12)
	rows := filepath.Join(dir, "rows.parquet")
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, stderr := clitest.Run(rootCommand(), append(append([]string{"deploy"}, args...), "--config", config)...)
		if code != want {
			t.Errorf("%v: exit code %d, want %d: %s%s", args, code, want, out, stderr)
		}
		return out + stderr
	}
	for _, c := range []struct {
		code  int
		args  string
		texts []string
	}{
		{exit.Done, "status", []string{"no rollouts"}},
		{exit.Done, "plan shop", []string{"would be rolled out on 12 replicas of 12 hosts", "latency (measured; less is better)", "2 (10.0%), 3 (25.0%), 6 (50.0%), 12 (100.0%) replicas", "local access ratio"}},
		{exit.Done, "plan shop --indicator cpus", []string{"cpus (measured; less is better)"}},
		{exit.Done, "plan shop --model " + gainModel, []string{"the model expects", "a gain of"}},
		{exit.Bad, "plan shop --model none.json", []string{"no such file"}},
		{exit.Bad, "start shop --model " + gainModel, []string{"does not find \"shop\" worth binding", "leave out --model"}},
		{exit.Bad, "plan shop --indicator colour", []string{"want latency, ipc or cpus"}},
		{exit.Bad, "plan shop --indicator ipc", []string{"do not show the indicator"}},
		{exit.Bad, "plan shap", []string{"none of its instances was seen"}},
		{exit.Bad, "plan shop --bin 1s", []string{"5m0s to 1h0m0s"}},
		{exit.Bad, "status shop", []string{"no rollout", "deploy status"}},
		{exit.Bad, "pause shop", []string{"no rollout"}},
		{exit.Done, "start shop", []string{"is rolled out"}},
		{exit.Bad, "start shop", []string{"under way"}},
		{exit.Done, "pause shop --why sale", []string{"watched before", "paused"}},
		{exit.Bad, "pause shop", []string{"already"}},
		{exit.Done, "status", []string{"shop", "watched before, paused, 0 of 12 replicas to be bound"}},
		{exit.Done, "status shop", []string{"compared by", "pause by ", ": sale"}},
		{exit.Bad, "forget shop", []string{"under way"}},
		{exit.Nothing, "rows " + rows, []string{"shop: no row: it has not ended", "nothing was written"}},
		{exit.Bad, "rows /no/such/folder/rows", []string{"/no/such/folder"}},
		{exit.Done, "rollback shop", []string{"rolled back"}},
		{exit.Done, "status shop", []string{"rolled back: it was asked for"}},
		{exit.Nothing, "rows " + rows, []string{"no comparison of two halves"}},
		{exit.Done, "veto shop", []string{"vetoed"}},
		{exit.Bad, "start shop", []string{"said no"}},
		{exit.Done, "forget shop", []string{"own configuration holds"}},
		{exit.Done, "start shop --margin 0.05 --seed 3", []string{"more harm than 5.0%"}},
	} {
		out := run(c.code, strings.Fields(c.args)...)
		for _, want := range c.texts {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
				t.Errorf("%s: no %q in:\n%s", c.args, want, out)
			}
		}
	}
	var r RolloutsReport
	if err := json.Unmarshal([]byte(run(exit.Done, "status", "-o", "json")), &r); err != nil || len(r.Rollouts) != 1 || r.Rollouts[0].How != unit.HowMeasured || len(r.Rollouts[0].Asked) != 1 {
		t.Errorf("%v: %+v", err, r)
	}
}

// The file of orders comes before a rollout.
func TestDeployBesideOrders(t *testing.T) {
	orders := clitest.WriteFile(t, filepath.Join(t.TempDir(), "orders.yaml"), "services: [{name: shop, approved: true}]\n")
	dir, config := configIn(t, "orders: "+orders+"\n")
	shopStore(t, dir, 12)
	if code, text := clitest.RunCaught(t, rootCommand(), "deploy", "start", "shop", "--config", config); code != exit.Bad || !strings.Contains(text, "remove the service there") {
		t.Errorf("exit code %d: %s", code, text)
	}
}
