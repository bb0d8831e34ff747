// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"context"
	"os"
	"reflect"
	"strings"
	"testing"

	"homenode/internal/model"
	"homenode/internal/sim/catalog"
)

// folds are the golden model under the name of each kind: good enough to run, not to judge.
func folds(t *testing.T) map[string]*model.Model {
	t.Helper()
	data, err := os.ReadFile("../../model/testdata/model.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*model.Model{}
	for _, kind := range catalog.SharerKinds() {
		m, err := model.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		m.LeftOut = kind
		all[kind] = &m
	}
	return all
}

func packConfig(t *testing.T) PackConfig {
	t.Helper()
	c := PackConfig{Config: config(t, catalog.Opteron, 16, 8), Models: folds(t), Trials: 12, Confidence: 0.9}
	c.Seed = 2
	c, err := NewPack(c)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func runPack(t *testing.T, c PackConfig) PackResult {
	t.Helper()
	r, err := RunPack(context.Background(), c, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The result does not depend on workers; what is measured is not missed; and disjoint nodes keep
// the optimum's containers as fast as they are alone.
func TestPack(t *testing.T) {
	c := packConfig(t)
	r := runPack(t, c)
	c.Workers = 1
	if again := runPack(t, c); !reflect.DeepEqual(r, again) {
		t.Errorf("the number of workers changes the result: %+v, %+v", r, again)
	}
	by := map[string]PackLine{}
	for _, l := range r.Policies {
		by[l.Policy] = l
		if l.Wanted != 12*8 || l.Met > l.Packed || l.Packed > l.Wanted || (l.Missed > 0) != (l.Met < l.Packed) {
			t.Errorf("%+v", l)
		}
	}
	if best := by[optimum]; best.Missed > 0 || best.OfOptimum != 1 || best.Packed == 0 {
		t.Errorf("the optimum misses goals: %+v", best)
	}
	if v := by["ml-verified"]; v.Missed > 0 || v.Packed == 0 || v.Probes < 2 {
		t.Errorf("measured containers miss their goals: %+v", v)
	}
	if by["conservative"].Packed != 12 || by["aggressive"].Packed != 4*12 || by["smart-aggressive"].Packed != 4*12 {
		t.Errorf("%+v", r)
	}
}

// In every other queue all containers are alike.
func TestQueues(t *testing.T) {
	c := packConfig(t)
	all, alone := catalog.GenerateSharers(c.Seed, c.Applications), [][]Row{}
	err := Run(context.Background(), c.Config, func(rows []Row) error { alone = append(alone, rows); return nil }, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	for number := range 4 {
		q, err := c.draw(number, all, alone)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, one := range q.queue {
			names[one.sharer.Name] = true
		}
		if alike := len(names) == 1; len(q.queue) != 8 || alike != (number%2 == 0) {
			t.Errorf("queue %d has %d containers of %d workloads", number, len(q.queue), len(names))
		}
	}
}

func TestPackRefused(t *testing.T) {
	for want, change := range map[string]func(*PackConfig){
		"want 1 to":                    func(c *PackConfig) { c.Trials = 0 },
		"there is none":                func(c *PackConfig) { delete(c.Models, "reads") },
		"that it has not seen":         func(c *PackConfig) { c.Models["reads"].LeftOut = "" },
		"is of another machine":        func(c *PackConfig) { c.Models["reads"].Machine = "pdp-11" },
		"is more than the model knows": func(c *PackConfig) { c.Confidence = 0.9999 },
		"has no third probe":           func(c *PackConfig) { c.Models["reads"].Forests = c.Models["reads"].Forests[:1] },
		"give a number above 0":        func(c *PackConfig) { c.VCPUs = 0 },
		"0 applications: want 1 t":     func(c *PackConfig) { c.Applications = 0 },
	} {
		c := PackConfig{Config: config(t, catalog.Opteron, 16, 8), Models: folds(t), Trials: 12, Confidence: 0.9}
		change(&c)
		if _, err := NewPack(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if _, err := RunPack(context.Background(), PackConfig{}, nil); err == nil {
		t.Error("a configuration without models runs")
	}
}
