// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"reflect"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/policy/vmmap"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// besideNode is the distance below which another node is of the same package: where no other
// memory is nearer to distance 20, the figure is not the one by which sensitivity is defined.
const besideNode = 16

// A program that only computes is a sheep, and one that floods is a devil, on every
// machine. The others are a golden: what follows from the present rows, not what must be.
func TestTruth(t *testing.T) {
	want := map[string]Class{
		"ep": Sheep, "gamess": Sheep, "stream": Devil, "lbm": Devil,
		// The golden.
		"povray": Sheep, "sjeng": Sheep, "mpegaudio": Sheep,
		"libquantum": Devil, "milc": Devil, "mg": Devil, "sp": Devil,
	}
	sensitive := map[string]bool{"ep": false, "gamess": false, "povray": false, "mpegaudio": false, "mcf": true, "omnetpp": true, "soplex": true, "fft": true}
	each(t, func(t *testing.T, m machine.Machine, y memsys.System) {
		for _, a := range Apps() {
			f := Truth(a, m, &y)
			s := f.Slowdowns
			t.Logf("%-10s %-6s sensitive %-5v: hurt %3.0f %%, harm %3.0f %%, at distance %v %3.0f %%", a.Name, f.Class, f.Sensitive.Or(false),
				100*s.Hurt.Or(-1), 100*s.Harm.Or(-1), f.Distance.Or(-1), 100*s.Remote.Or(-1))
			if c, ok := want[a.Name]; ok && f.Class != c {
				t.Errorf("%s is %q, want %q: %+v", a.Name, f.Class, c, s)
			}
			if yes, ok := sensitive[a.Name]; ok && !(yes && f.Distance.Or(0) < besideNode) && f.Sensitive != unit.Some(yes) {
				t.Errorf("%s is sensitive: %v, want %v: %+v", a.Name, f.Sensitive, yes, s)
			}
			for what, x := range map[string]unit.Opt[float64]{"hurt": s.Hurt, "harm": s.Harm, "remote": s.Remote} {
				if v, ok := x.Get(); !ok || v < -1e-3 || v > 50 {
					t.Errorf("%s: %s %v (%v)", a.Name, what, v, ok)
				}
			}
			if k := a.Known(m, &y); k.Class != f.Class || k.Sensitive != f.Sensitive.Or(false) || f.How != unit.HowModelled {
				t.Errorf("%s: %+v and %+v", a.Name, k, f)
			}
			if again := Truth(a, m, &y); !reflect.DeepEqual(again, f) {
				t.Errorf("%s: %+v, again %+v", a.Name, f, again)
			}
		}
	})
}

// A program that only reuses half of a cache is a rabbit where only the cache is between it
// and the devil, and one that streams is a devil.
func TestExtremes(t *testing.T) {
	each(t, func(t *testing.T, m machine.Machine, y memsys.System) {
		llc := unit.Bytes(y.Domains[0].LLC)
		reuser := row{name: "reuser", cpi: 0.5, round: 1000, parts: []part{{size: llc / 2, shared: true, apki: 50, mlp: 1}}}
		flood := row{name: "flood", cpi: 0.5, round: 1000, parts: []part{{size: 4 * llc, apki: 50, mlp: 8, stream: true}}}
		idle := row{name: "idle", cpi: 0.5, round: 1000}
		for class, r := range map[Class]row{Rabbit: reuser, Devil: flood, Sheep: idle} {
			if f := Truth(r.app(), m, &y); f.Class != class {
				t.Errorf("%s is %q: %+v", r.name, f.Class, f.Slowdowns)
			}
		}
	})
}

// Drawn applications are of all classes on every machine, at least a sixth each, and both
// sensitive and insensitive. On machines with several nodes a package, which came later, an
// eighth, and sensitivity where distance 20 is not far from any.
func TestGenerated(t *testing.T) {
	each(t, func(t *testing.T, m machine.Machine, y memsys.System) {
		n := 300
		if len(m.Nodes) > 8 {
			n = 60 // a solve of 36 nodes takes long
		}
		count, sensitive, least, far := map[Class]int{}, 0, n/6, true
		if m.Distance(0, 1).Or(0) < besideNode {
			least = n / 8
		}
		for _, a := range Generate(1, n) {
			f := Truth(a, m, &y)
			count[f.Class]++
			far = far && f.Distance.Or(0) >= besideNode
			if f.Sensitive.Or(false) {
				sensitive++
			}
		}
		t.Logf("%v of %d, %d sensitive", count, n, sensitive)
		for _, c := range []Class{Sheep, Rabbit, Devil} {
			if count[c] < least {
				t.Errorf("%d of %d are %s", count[c], n, c)
			}
		}
		if far && (sensitive < n/6) || sensitive > n*5/6 {
			t.Errorf("%d of %d are sensitive", sensitive, n)
		}
	})
}

// The first of many are the same as the first of few, and seeds differ.
func TestGenerateIsSeeded(t *testing.T) {
	few, many, other := Generate(7, 3), Generate(7, 30), Generate(8, 3)
	for i := range few {
		a, b, c := few[i].Spec("x", 4, 0), many[i].Spec("x", 4, 0), other[i].Spec("x", 4, 0)
		a.Service, c.Service = b.Service, b.Service
		if !reflect.DeepEqual(a, b) || reflect.DeepEqual(b, c) || few[i].Name != many[i].Name {
			t.Errorf("%+v, of more %+v, of another seed %+v", a, b, c)
		}
	}
}

// Measured slowdowns of a real program are a finding by the same definition, and survive
// JSON.
func TestMeasured(t *testing.T) {
	f := Finding{App: "real", Machine: "somewhere", How: unit.HowMeasured, From: "three runs", Slowdowns: vmmap.Slowdowns{
		Hurt: unit.Some(0.3), Harm: unit.Some(0.1), Remote: unit.Some(0.05),
	}}.Judge()
	if f.Class != Rabbit || f.Sensitive != unit.Some(false) {
		t.Errorf("%+v", f)
	}
	data, err := json.Marshal(f)
	var back Finding
	if err != nil || json.Unmarshal(data, &back) != nil || !reflect.DeepEqual(f, back) {
		t.Errorf("%s reads back as %+v: %v", data, back, err)
	}
}
