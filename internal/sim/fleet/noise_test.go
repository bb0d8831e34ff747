// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"math"
	"strings"
	"testing"

	"homenode/internal/sim/detmath"
)

// Whatever noise.json contains, a noise that was not measured says so.
func TestPackagedNoise(t *testing.T) {
	n := PackagedNoise()
	source, err := n.Measured()
	if n.Unmeasured != errors.Is(err, ErrUnmeasured) || (err == nil) != (source != "") {
		t.Errorf("%+v: measured %q, %v", n, source, err)
	}
}

func TestNoiseRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*Noise)
		why    string
	}{
		{func(n *Noise) { n.Unmeasured = true }, "unmeasured"},
		{func(n *Noise) { n.Repeats = 1 }, "repeats is 1"},
		{func(n *Noise) { n.Source = "" }, "source"},
		{func(n *Noise) { n.Gains.CPU = -0.1 }, "gains.cpu"},
		{func(n *Noise) { n.Features.MBW = math.NaN() }, "features.mbw"},
		{func(n *Noise) { n.Features.RMBR = 2 }, "features.rmbr"},
	} {
		n := measuredNoise()
		if err := n.Validate(); err != nil {
			t.Fatal(err)
		}
		c.change(&n)
		if err := n.Validate(); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("error %v, want one of %s", err, c.why)
		}
	}
	for _, data := range []string{"", "{}", `{"schema":1,"source":"x","unmeasured":true,"x":1}`, `{"schema":99}`} {
		if n, err := DecodeNoise([]byte(data)); err == nil || n != (Noise{}) {
			t.Errorf("%q was read", data)
		}
	}
}

// The deviation of disturbed values is the configured one.
func TestDisturb(t *testing.T) {
	n := measuredNoise()
	const repeats = 4000
	var sum, square, gains, gainSquares float64
	for i := range repeats {
		r := Row{MBW: known(1e9), CPU: known(2), CPULimit: known(4), GainLatencyTrue: known(0.2)}
		r.Disturb(n, detmath.NewRandom(uint64(i), "noise"))
		if !r.NoiseMeasured || *r.GainLatencyTrue != 0.2 || *r.CPULimit != 4 || *r.LoadFactor != *r.CPU/4 || r.MSR != nil || r.GainCPU != nil {
			t.Fatalf("%+v", r)
		}
		x, g := *r.MBW/1e9-1, (1-*r.GainLatency)/0.8-1
		sum, square = sum+x, square+x*x
		gains, gainSquares = gains+g, gainSquares+g*g
	}
	for what, d := range map[string][3]float64{"MBW": {sum, square, n.Features.MBW}, "latency": {gains, gainSquares, n.Gains.Latency}} {
		if dev := math.Sqrt(d[1] / repeats); math.Abs(dev/d[2]-1) > 0.05 || math.Abs(d[0]/repeats) > 0.1*d[2] {
			t.Errorf("%s: deviation %v around %v, want %v around 0", what, dev, d[0]/repeats, d[2])
		}
	}
	r := Row{MBW: known(1e9), GainLatencyTrue: known(0.2)}
	r.Disturb(Noise{Unmeasured: true}, detmath.NewRandom(1))
	if r.NoiseMeasured || *r.MBW != 1e9 || *r.GainLatency != 0.2 {
		t.Errorf("without noise: %v, %v, measured %v", *r.MBW, *r.GainLatency, r.NoiseMeasured)
	}
}

func FuzzDecodeNoise(f *testing.F) {
	f.Add(packagedNoise)
	f.Add([]byte(`{"schema":1,"source":"x","repeats":5}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n, err := DecodeNoise(data); err != nil && n != (Noise{}) {
			t.Errorf("an error and a value: %+v", n)
		}
	})
}
