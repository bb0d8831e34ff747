// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	"homenode/internal/hub/deploy"
	"homenode/internal/rollout"
	"homenode/internal/unit"
)

// listed are made-up rollouts.
type listed []deploy.Rollout

func (l listed) All() ([]deploy.Rollout, error) {
	return l, fmt.Errorf("read a rollout: /x/<b>\x1b.json: no state")
}

func (l listed) Get(service string) (deploy.Rollout, error) {
	for _, r := range l {
		if r.Service() == service {
			return r, nil
		}
	}
	return deploy.Rollout{}, fmt.Errorf("%w of %q", deploy.ErrNone, service)
}

// madeUp has a rollout with a gain on its way, one that did harm, and one that has just begun.
func madeUp() listed {
	var all listed
	for _, c := range []struct {
		service, why string
		effect       float64
		bins         int
	}{{"search", "", -0.12, 18}, {`evil-<script>"'&`, "<b>\x1b[2J", 0.2, 40}, {"cache", "", 0, 3}} {
		p := rollout.Usual(c.service, nil)
		for i := range 40 {
			p.Replicas = append(p.Replicas, rollout.Replica{Host: fmt.Sprint("host-", i), Workload: "/a"})
		}
		s, err := rollout.Begin(p)
		if err != nil {
			panic(err)
		}
		for bin := range c.bins {
			shown := make([]unit.Opt[float64], len(p.Replicas))
			for i, bound := range s.Bound() {
				x := 0.01 * (1 + 0.02*math.Sin(float64(7*i+bin*bin)))
				if bound {
					x *= 1 + c.effect
				}
				shown[i] = unit.Some(x)
			}
			s, _ = s.Step(shown)
		}
		var times []time.Time
		for _, e := range s.Events {
			times = append(times, noon.Add(-8*time.Hour+time.Duration(e.Bin)*p.Bin))
		}
		all = append(all, deploy.Rollout{Times: times, Schema: deploy.Schema, Indicator: deploy.Latency, How: unit.HowMeasured, Began: noon.Add(-8 * time.Hour), State: s,
			Observed: unit.OptOf(s.BoundCount(), s.BoundCount() > 0), Asked: []deploy.Asked{{At: noon.Add(-8 * time.Hour), By: "ada", What: "start", Why: c.why}}, Told: deploy.Told{Problem: c.why}})
	}
	return all
}

// A hub without rollouts or a model has no such page, and one that is not there is not found.
func TestNoRollouts(t *testing.T) {
	h := Handler(Options{Store: fleet(1, 1), Now: func() time.Time { return noon }})
	for _, target := range []string{"/rollouts", "/rollout?service=a", "/gains"} {
		if got := get(h, target); got.Code != http.StatusNotFound {
			t.Errorf("%s: %d", target, got.Code)
		}
	}
	if got := get(handlerOf(fleet(1, 1)), "/rollout?service=another"); got.Code != http.StatusNotFound {
		t.Errorf("%d", got.Code)
	}
}
