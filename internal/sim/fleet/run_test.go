// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"homenode/internal/sim"
	"homenode/internal/sim/memsys"
)

// toyFleet is small: it tests the fleet, not the world.
func toyFleet(servers int) Config {
	c := DefaultConfig()
	c.Machine, c.System, c.newWorld = toyShape, memsys.System{Name: "toy", From: "a toy", Hz: 2.7e9}, newToy
	c.Size = Size{Servers: servers, Minutes: 3 * 60, Workloads: 8}
	c.Warmup = 10 * time.Minute
	return c
}

func runFleet(t testing.TB, c Config) (Result, []Row) {
	t.Helper()
	var rows []Row
	r, err := Run(t.Context(), c, func(more []Row) error { rows = append(rows, more...); return nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r, rows
}

func text(t testing.TB, r Result, rows []Row) string {
	t.Helper()
	a, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	return string(a) + string(b)
}

func TestWorkersDoNotMatter(t *testing.T) {
	c := toyFleet(13)
	c.DataSet, c.Share = true, 0.6
	c.Noise = measuredNoise()
	r, rows := runFleet(t, c)
	want := text(t, r, rows)
	if len(rows) == 0 {
		t.Fatal("nothing was compared: no rows")
	}
	for _, c.Workers = range []int{2, 3, 64} {
		r, rows := runFleet(t, c)
		if got := text(t, r, rows); got != want {
			t.Errorf("%d workers: another result", c.Workers)
		}
	}
}

func TestShare(t *testing.T) {
	c := toyFleet(10)
	c.Share = 0
	off, _ := runFleet(t, c)
	c.Share = 1
	on, _ := runFleet(t, c)
	c.Share = 0.3
	some, _ := runFleet(t, c)
	switch {
	case off.With != nil || off.Without.Servers != 10 || off.Change != nil:
		t.Errorf("share 0: %+v", off)
	case on.Without != nil || on.With.Servers != 10 || on.With.Binds.Binds == 0 || on.With.UnbindRatio == nil:
		t.Errorf("share 1: %+v", on)
	case some.With.Servers != 3 || some.Without.Servers != 7 || some.Change == nil || some.Change.Paired:
		t.Errorf("share 0.3: %+v", some)
	case *on.With.LocalRatio <= *off.Without.LocalRatio:
		t.Errorf("bound %v of reads are local, else %v", *on.With.LocalRatio, *off.Without.LocalRatio)
	}
	few, many := toyFleet(50), toyFleet(50)
	few.Share, many.Share = 0.2, 0.7
	a, b, n := few.withMAO(), many.withMAO(), 0
	for i := range a {
		if a[i] {
			n++
		}
		if a[i] && !b[i] {
			t.Errorf("server %d has MAO with a share of 0.2 but not of 0.7", i)
		}
	}
	if n != 10 {
		t.Errorf("%d of 50 servers are 0.2 of them", n)
	}
}

// The warm-up and the run are rounded to whole windows, and what is between them is
// counted: hours, utilisation and P99 do not depend on the period.
func TestLongWindows(t *testing.T) {
	for _, z := range []struct {
		period, warmup time.Duration
		minutes        int
		seconds        float64
	}{
		{time.Hour, 15 * time.Minute, 120, 3600},
		{7 * time.Minute, 10 * time.Minute, 60, 6 * 7 * 60}, // 2 windows of warm-up, 8 in total
		{time.Minute, 0, 10, 600},
	} {
		for _, pair := range []bool{false, true} {
			c := toyFleet(2)
			c.Period, c.Warmup, c.Size.Minutes, c.Share = z.period, z.warmup, z.minutes, 0
			if pair {
				c.DataSet, c.Share, c.Size.Minutes = true, 1, z.minutes+120
				z.seconds = float64((c.windows() - c.warmWindows())) * z.period.Seconds()
			}
			r, _ := runFleet(t, c)
			var hours float64
			for _, s := range r.List {
				if s.Without != nil {
					hours += s.Without.Hours
				}
			}
			most := r.Workloads * 2 * z.seconds / 3600
			if r.Seconds != z.seconds || hours > 1.2*most || hours < 0.8*most {
				t.Errorf("windows of %v: %v s, want %v; %v hours of about %v", z.period, r.Seconds, z.seconds, hours, most)
			}
			if u := r.Without.CPUSeconds / (z.seconds * 2 * r.CPUs); u != r.Without.Utilisation {
				t.Errorf("windows of %v: utilisation %v, want %v", z.period, r.Without.Utilisation, u)
			}
		}
	}
}

// Both sides of a pair are the worlds of a run without a data set, except for the time in
// which workloads are observed first.
func TestPairHasTheSameServers(t *testing.T) {
	c := toyFleet(4)
	c.DataSet = true
	pair, rows := runFleet(t, c)
	c.DataSet, c.Share = false, 0
	off, _ := runFleet(t, c)
	if pair.Without.CPUSeconds == 0 || math.Abs(pair.Without.CPUSeconds/off.Without.CPUSeconds-1) > 1e-9 {
		t.Errorf("without MAO %v CPU seconds in a pair, %v alone", pair.Without.CPUSeconds, off.Without.CPUSeconds)
	}
	if !pair.Change.Paired || *pair.Change.CPU >= 0 || pair.DataSet.Rows != len(rows) || len(rows) == 0 {
		t.Errorf("%+v, %+v, %d rows", pair.Change, pair.DataSet, len(rows))
	}
}

func TestErrorsEndIt(t *testing.T) {
	c := toyFleet(30)
	c.Workers = 3
	bad := errors.New("no such machine")
	c.newWorld = func(s sim.Config) (world, error) {
		if s.Seed == c.serverSeed(7) {
			return nil, bad
		}
		return newToy(s)
	}
	if _, err := Run(t.Context(), c, nil, nil); !errors.Is(err, bad) || !strings.Contains(err.Error(), "server 7") {
		t.Errorf("error %v", err)
	}
	c = toyFleet(6)
	c.DataSet = true
	if _, err := Run(t.Context(), c, func([]Row) error { return bad }, nil); !errors.Is(err, bad) {
		t.Errorf("error %v", err)
	}
}

func TestCancel(t *testing.T) {
	c := toyFleet(200)
	c.Workers = 2
	ctx, stop := context.WithCancel(t.Context())
	last := 0
	_, err := Run(ctx, c, nil, func(done, all int) {
		if last++; done != last || all != 200 {
			t.Fatalf("%d of %d done, want %d of 200", done, all, last)
		}
		if done == 3 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) || last > 20 {
		t.Errorf("error %v after %d servers", err, last)
	}
}

func TestConfigRefuses(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"share above 1":     func(c *Config) { c.Share = 1.1 },
		"share NaN":         func(c *Config) { c.Share = math.NaN() },
		"no servers":        func(c *Config) { c.Size.Servers = 0 },
		"negative days":     func(c *Config) { c.Size.Minutes = -1440 },
		"no period":         func(c *Config) { c.Period = 0 },
		"step above period": func(c *Config) { c.Step = 2 * c.Period },
		"all warm-up":       func(c *Config) { c.Warmup = 3 * time.Hour },
		"no machine":        func(c *Config) { c.Machine.Nodes = nil },
		"no gain":           func(c *Config) { c.DataSet, c.Share = true, 0 },
		"MAO":               func(c *Config) { c.MAO.Target = 2 },
		"actuate":           func(c *Config) { c.Actuate.Rate = -1 },
		"noise":             func(c *Config) { c.Noise.Gains.CPU = 2 },
		"unmeasured noise": func(c *Config) {
			c.Noise = Noise{Schema: 1, Source: "x", Unmeasured: true, Gains: GainsNoise{CPU: 0.1}}
		},
		"no window":         func(c *Config) { c.Size.Minutes, c.Period, c.Warmup = 60, time.Hour, 15*time.Minute },
		"no MAO in a share": func(c *Config) { c.Size.Servers, c.Share = 4, 0.1 },
		"all in a share":    func(c *Config) { c.Size.Servers, c.Share = 4, 0.9 },
		"rows too early":    func(c *Config) { c.DataSet, c.Size.Minutes = true, 99 },
	} {
		c := toyFleet(1)
		change(&c)
		if r, err := Run(t.Context(), c, nil, nil); err == nil || r.Schema != 0 {
			t.Errorf("%s: was accepted", name)
		}
	}
}

func TestResultReadsBack(t *testing.T) {
	c := toyFleet(3)
	c.DataSet = true
	r, _ := runFleet(t, c)
	data, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Encode(back)
	if err != nil || string(again) != string(data) {
		t.Errorf("reads back as another: %v", err)
	}
}

func measuredNoise() Noise {
	n := Noise{Schema: 1, Source: "a test's", Repeats: 5}
	n.Features = FeaturesNoise{MBW: 0.05, MSR: 0.02, NPMR: 0.01, RMBR: 0.05, CPU: 0.02, RSS: 0.01, IPC: 0.01, LLCMPKI: 0.05}
	n.Gains = GainsNoise{Latency: 0.03, CPU: 0.01, IPC: 0.01}
	return n
}
