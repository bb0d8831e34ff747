// SPDX-License-Identifier: Apache-2.0

package detmath

import (
	"math"
	"runtime"
	"testing"
)

// Comparison with the library's functions, which are right to an ulp.
func TestAgainstMath(t *testing.T) {
	r := NewRandom(1, "math")
	for range 100_000 {
		x := 1400*r.Float() - 700
		if got, want := Exp(x), math.Exp(x); math.Abs(got/want-1) > 4e-15 {
			t.Fatalf("Exp(%v) is %v, want %v", x, got, want)
		}
		y := math.Exp(x)
		if got, want := Log(y), math.Log(y); math.Abs(got-want) > 2e-15*max(1, math.Abs(want)) {
			t.Fatalf("Log(%v) is %v, want %v", y, got, want)
		}
		b, p := 10*r.Float(), 20*r.Float()-10
		if got, want := Pow(b, p), math.Pow(b, p); math.Abs(got/want-1) > 1e-13 {
			t.Fatalf("Pow(%v, %v) is %v, want %v", b, p, got, want)
		}
	}
	for _, c := range []struct{ got, want float64 }{
		{Exp(0), 1}, {Exp(-1000), 0}, {Exp(1e9), Exp(700)}, {Log(1), 0}, {Pow(0, 3), 0}, {Pow(2, 10), 1024},
	} {
		if math.Abs(c.got-c.want) > 1e-12*c.want {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}

// The bits must not change from one CPU of an architecture to another, nor from one version
// of homenode to the next; otherwise a seed would mean another world.
func TestBits(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("these are amd64's bits")
	}
	r := NewRandom(42, "feed", "3")
	got := [...]uint64{
		math.Float64bits(Exp(1.25)), math.Float64bits(Log(3)), math.Float64bits(Pow(1.7, -2.3)),
		r.Uint64(), math.Float64bits(r.Float()), math.Float64bits(r.Normal()), math.Float64bits(r.Exponential()),
	}
	want := [...]uint64{
		0x400bec38edb0faef, 0x3ff193ea7aad030b, 0x3fd2e2e62f070717,
		0x938b9b3fe4dce47e, 0x3fdf3ad930b28236, 0x3fe7a08a7513421d, 0x3fd8ea0b497fc082,
	}
	if got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}

func TestMoments(t *testing.T) {
	r := NewRandom(7)
	const n = 1_000_000
	var sum, square, exp float64
	for range n {
		v := r.Normal()
		sum, square, exp = sum+v, square+v*v, exp+r.Exponential()
	}
	if mean, dev := sum/n, math.Sqrt(square/n); math.Abs(mean) > 0.005 || math.Abs(dev-1) > 0.005 {
		t.Errorf("normal: mean %v, deviation %v", mean, dev)
	}
	if mean := exp / n; math.Abs(mean-1) > 0.005 {
		t.Errorf("exponential: mean %v", mean)
	}
	if NewRandom(1, "a", "bc").state == NewRandom(1, "ab", "c").state {
		t.Error("keys run into each other")
	}
}
