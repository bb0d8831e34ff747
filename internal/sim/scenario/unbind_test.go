// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"homenode/internal/policy/mao"
	"homenode/internal/sim"
)

// unbinding is what one arm of mao-day did.
type unbinding struct {
	Unbound float64 `json:"unbind_ratio"` // share of the approved replicas' time
	Misses  float64 `json:"sla_misses"`   // share of replica-periods
	periods float64
}

// The paper's Fig. 6: on the same day, B leaves approved services unbound for at most half
// of the time that A does, and misses the service level no more often. That is judged by
// period and replica: the p99 latency may be 1.5 times the service's mean p99 under Linux
// alone with the same seed. No arm influences this level, as nothing is bound there.
//
// As a test it uses the default, uniform: bind, with one seed. With
// HOMENODE_BENCH_UNBIND=FILE the figures of five seeds are written there, also for uniform:
// always, which was the default before these figures were known; the bench judges both.
func TestUnbindRatio(t *testing.T) {
	path := os.Getenv("HOMENODE_BENCH_UNBIND")
	s := loadFile(t, "mao-day.yaml")
	seeds, modes := s.Seeds[:1], []mao.Uniform{mao.DefaultConfig().Uniform}
	if path != "" {
		seeds, modes = s.Seeds, []mao.Uniform{mao.UniformBind, mao.UniformAlways}
	}
	figures := map[mao.Uniform]map[string][]unbinding{}
	for _, mode := range modes {
		s.MAO.Uniform = mode
		figures[mode] = unbinds(t, s, seeds)
		for i, seed := range seeds {
			a, b, none := figures[mode]["mao-a"][i], figures[mode]["mao-b"][i], figures[mode]["none"][i]
			t.Logf("%s, seed %d: unbound A %.4f, B %.4f; missed none %.4f, A %.4f, B %.4f", mode, seed, a.Unbound, b.Unbound, none.Misses, a.Misses, b.Misses)
			if a.Unbound <= 0 {
				t.Errorf("%s, seed %d: A unbinds nothing: there is nothing to compare", mode, seed)
			}
			if path == "" && (b.Unbound > a.Unbound/2 || b.Misses > a.Misses) { // the bench judges by itself
				t.Errorf("seed %d: B is unbound %.4f of the time and misses %.4f, A %.4f and %.4f", seed, b.Unbound, b.Misses, a.Unbound, a.Misses)
			}
		}
	}
	if path != "" {
		text, err := json.MarshalIndent(figures, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// unbinds is what each arm did, by seed.
func unbinds(t *testing.T, s Setting, seeds []uint64) map[string][]unbinding {
	t.Helper()
	all := map[string][]unbinding{}
	for _, seed := range seeds {
		limits := map[string]float64{}
		for _, name := range []string{"none", "mao-a", "mao-b"} {
			all[name] = append(all[name], unbound(t, s, name, seed, limits))
		}
	}
	return all
}

// unbound runs an arm; the first one sets the limits for all.
func unbound(t *testing.T, s Setting, name string, seed uint64, limits map[string]float64) unbinding {
	t.Helper()
	i := slices.IndexFunc(s.Arms, func(a Arm) bool { return a.Name == name })
	w, err := sim.NewWorld(s.world(s.Arms[i], seed))
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.loop(s.Arms[i], w)
	if err != nil {
		t.Fatal(err)
	}
	approved := map[string]bool{}
	var truths []sim.Truth
	u := unbinding{}
	for n := range int(s.Lasts / s.Period) {
		win := l.Round()
		truth := w.Truth()
		if n < int(s.Warmup/s.Period) {
			continue
		}
		for _, wl := range win.Workloads {
			if approved[wl.ID] = wl.Approved; wl.Approved {
				u.periods++
				u.Unbound += float64(b2i(!l.Bound(wl.ID)))
			}
		}
		truths = append(truths, truth...)
	}
	if len(limits) == 0 {
		count := map[string]float64{}
		for _, x := range truths {
			limits[x.Service] += x.P99
			count[x.Service]++
		}
		for service, n := range count {
			limits[service] *= 1.5 / n
		}
	}
	for _, x := range truths {
		if approved[x.Workload] {
			u.Misses += float64(b2i(x.P99 > limits[x.Service]))
		}
	}
	u.Unbound, u.Misses = u.Unbound/u.periods, u.Misses/u.periods
	return u
}
