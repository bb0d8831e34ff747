// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

// cramped has room for everything but large buffers, whatever Free says.
type cramped struct{ *fake }

func (c cramped) Run(ctx context.Context, j membench.Job) (membench.Result, error) {
	for _, b := range j.Buffers {
		if b.Bytes >= 64*unit.MiB {
			return membench.Result{}, errors.New("map buffer 0: cannot allocate memory")
		}
	}
	return c.fake.Run(ctx, j)
}

// Without the largest working set there is no latency of memory, and no level is read
// from the others; later the measurement is continued.
func TestNoMemoryStep(t *testing.T) {
	f := newFake()
	o := f.options()
	o.Parts = []profile.Part{profile.Caches, profile.CacheSharing, profile.CoreToCore}
	p, err := Measure(t.Context(), cramped{f}, o, profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	valid(t, p)
	if slices.Contains(p.Done, profile.Caches) || slices.Contains(p.Done, profile.CacheSharing) || len(p.Caches) != 0 || len(p.WorkingSets) != 0 {
		t.Errorf("done %v, caches %+v, %d working sets", p.Done, p.Caches, len(p.WorkingSets))
	}
	if len(p.Skipped) != 2 || p.Skipped[0].What != "64 MiB" || !strings.Contains(p.Skipped[0].Why, "cannot allocate") || p.Skipped[1].Why != errNoDRAM.Error() {
		t.Errorf("skipped %+v", p.Skipped)
	}
	if p, err = Measure(t.Context(), f, o, p); err != nil || len(p.Done) != 3 || len(p.Caches) != 3 {
		t.Errorf("gone on with: %v, done %v, caches %+v", err, p.Done, p.Caches)
	}
	b := &bench{profile: profile.Profile{WorkingSets: []profile.SizeFigure{{Bytes: 32 * unit.KiB, Figure: profile.FigureOf([]float64{1.5})}}}}
	if ns, ok := b.dram(); ok {
		t.Errorf("a hit of the first level, %g ns, passes for memory", ns)
	}
}
