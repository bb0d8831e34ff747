// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"

	"homenode/internal/profile"
	"homenode/internal/unit"
)

// smallCacheSeen is a profile whose scan ended at 1 MiB.
func smallCacheSeen() profile.Profile {
	return profile.Profile{Caches: []profile.CacheSize{{Level: 1, Size: unit.Some(unit.MiB)}}}
}

// A guest's scan may mistake page walks for memory: the firmware's larger cache counts,
// too, except in the lab.
func TestLLCOfAGuest(t *testing.T) {
	f := newFake()
	for i := range f.m.LLCs {
		f.m.LLCs[i].Size = unit.Some(32 * unit.MiB)
	}
	b := &bench{m: f.m, prober: f, guest: true, how: unit.HowMeasured, profile: smallCacheSeen()}
	if got := b.llc(); got != 32*unit.MiB {
		t.Errorf("buffers of a guest are sized by %v", got)
	}
	if text := b.disagree(); !strings.Contains(text, "of 1 MiB, the firmware says 32 MiB") {
		t.Errorf("caveat %q", text)
	}
	b.how = unit.HowModelled
	if got := b.llc(); got != unit.MiB || b.disagree() != "" {
		t.Errorf("buffers of the lab are sized by %v, caveat %q", got, b.disagree())
	}
}

// The scan continues beyond the firmware's size, however flat it is before.
func TestScanBeyondTheFirmware(t *testing.T) {
	f := newFake()
	f.cond.Hypervisor = "kvm"
	for i := range f.m.LLCs {
		f.m.LLCs[i].Size = unit.Some(16 * unit.MiB)
	}
	o := f.options()
	o.Parts = []profile.Part{profile.Caches}
	p, err := Measure(t.Context(), f, o, profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.WorkingSets); p.WorkingSets[n-2].Bytes <= 16*unit.MiB {
		t.Errorf("the scan ended at %v", p.WorkingSets[n-2].Bytes)
	}
	if codes := codesOf(p); codes != "virtual-machine,cache-size" {
		t.Errorf("caveats %s", codes)
	}
}

func codesOf(p profile.Profile) string {
	var codes []string
	for _, c := range p.Caveats {
		codes = append(codes, c.Code)
	}
	return strings.Join(codes, ",")
}
