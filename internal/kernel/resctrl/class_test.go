// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/unit"
)

func TestClass(t *testing.T) {
	none := func(int) unit.Bytes { return 0 }
	peak := func(int) unit.Bytes { return 200e9 }
	intel := Info{Resources: []Limit{{Name: "L3", Mask: 0xfffff, Shareable: 0xc0000, MinBits: 2}, {Name: "MB", Least: 10, Step: 10}}}
	cdp := Info{Resources: []Limit{{Name: "L3CODE", Mask: 0xfff, MinBits: 1}, {Name: "L3DATA", Mask: 0xfff, MinBits: 1}}}
	amd := Info{Resources: []Limit{{Name: "L3", Mask: 0xffff, MinBits: 1, Taken: map[int]uint64{1: 0xf000}}, {Name: "MB", Least: 1, Step: 1}}}
	two, _ := ParseSchemata([]byte("MB:0=100;1=100\nL3:0=fffff;1=fffff"))
	both, _ := ParseSchemata([]byte("L3CODE:0=fff\nL3DATA:0=fff"))
	for _, c := range []struct {
		info Info
		now  Schemata
		c    action.Class
		u    Unit
		peak func(int) unit.Bytes
		want string
	}{
		{intel, two, action.Class{Cache: 0.2}, Percent, none, "L3:0=3c000;1=3c000"}, // below what devices use
		{intel, two, action.Class{Cache: 0.01}, Percent, none, "L3:0=30000;1=30000"},
		{intel, two, action.Class{Cache: 0.95}, Percent, none, "L3:0=7ffff;1=7ffff"},
		{intel, two, action.Class{Cache: 1, Bandwidth: 0.33}, Percent, none, "L3:0=fffff;1=fffff\nMB:0=40;1=40"},
		{intel, two, action.Class{Bandwidth: 0.01}, Percent, none, "MB:0=10;1=10"},
		{intel, two, action.Class{Bandwidth: 1}, Percent, none, "MB:0=100;1=100"},
		{intel, two, action.Class{Bandwidth: 0.5}, MiBps, peak, "MB:0=95368;1=95368"},
		{amd, two, action.Class{Cache: 0.25, Bandwidth: 0.25}, EighthGB, peak, "L3:0=f000;1=f00\nMB:0=400;1=400"},
		{amd, two, action.Class{Bandwidth: 0.25}, EighthGB, none, "needs a profile"},
		{amd, two, action.Class{Cache: 0.9}, EighthGB, none, "no 15 ways side by side"},
		{cdp, both, action.Class{Cache: 0.5}, Percent, none, "L3CODE:0=fc0\nL3DATA:0=fc0"},
		{cdp, both, action.Class{Bandwidth: 0.5}, Percent, none, "cannot be limited here"},
		{Info{}, both, action.Class{Cache: 0.5}, Percent, none, "cannot be parted here"},
		{intel, two, action.Class{Cache: -1}, Percent, none, "shares from 0 to 1"},
	} {
		got, err := c.info.Schemata(c.c, c.now, c.u, c.peak)
		if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && got.String() != c.want {
			t.Errorf("%+v: %v, %v", c.c, got, err)
		}
	}
}

// Whatever the hardware: the kernel accepts what is computed, and it reads back as that
// class.
func TestClassProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		fs := kerneltest.NewResctrl()
		fs.Ways = 1 + r.IntN(32)
		fs.MinBits = 1 + r.IntN(min(fs.Ways, 3))
		fs.Shareable = r.Uint64() & (1<<fs.Ways - 1)
		fs.Step = uint64(2 + r.IntN(19))
		fs.Least = fs.Step * uint64(1+r.IntN(2))
		c := action.Class{Cache: unit.Ratio(r.Float64()), Bandwidth: unit.Ratio(r.Float64())}
		info, err := ReadInfo(fs)
		must(t, err)
		now, err := ReadSchemata(fs, "")
		must(t, err)
		want, err := info.Schemata(c, now, Percent, func(int) unit.Bytes { return 0 })
		if err != nil {
			t.Fatalf("%d ways, at least %d: %v", fs.Ways, fs.MinBits, err)
		}
		must(t, fs.Make("g"), fs.Write("g/schemata", want.String()))
		got, err := ReadSchemata(fs, "g")
		must(t, err)
		l3, _ := got.Get("L3")
		n := bits.OnesCount64(l3.Domains[0].Value)
		if float64(n)/float64(fs.Ways) < float64(c.Cache)-1e-9 || n > fs.MinBits && float64(n-1)/float64(fs.Ways) >= float64(c.Cache) {
			t.Fatalf("%v of %d ways are %d", c.Cache, fs.Ways, n)
		}
		if mb, _ := got.Get("MB"); float64(mb.Domains[0].Value) < 100*float64(c.Bandwidth)-1e-9 {
			t.Fatalf("%v: %v", c.Bandwidth, mb)
		}
	}
}
