// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"math/rand/v2"
	"testing"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// TestPropertyAccount: whatever the two censuses and the mover report, each byte of the
// task is in exactly one of the counts, and the result agrees by kind.
func TestPropertyAccount(t *testing.T) {
	left := func(reason string) bool { return reason == "left" }
	ended := 0
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 3))
		amount := func() unit.Bytes { return unit.Bytes(r.IntN(3)*r.IntN(1000)) * 4 * unit.KiB }
		rep := Report{To: set.FromNodes(1), LeaveShared: r.IntN(2) == 0}
		var after Census
		var res Result
		for _, k := range Kinds() {
			for node := range 3 {
				rep.Before.Add(k, node, amount())
				if r.IntN(2) == 0 {
					after.Add(k, node, amount())
				}
			}
			if r.IntN(2) == 0 {
				one := res.Of(k)
				one.Moved, one.Gone = amount(), amount()
				one.Fail("EBUSY", amount())
				if rep.LeaveShared {
					one.Fail("left", amount())
				}
			}
		}
		if r.IntN(4) == 0 {
			after = Census{}
			ended++
		}
		had := res.Gone()
		a := rep.Settle(&res, after, left)
		if a.Task != rep.Before.Elsewhere(rep.From, rep.To) || a.Moved+a.Gone+a.Failed+a.Stayed != a.Task+a.New {
			t.Fatalf("seed %d: %+v does not add up", seed, a)
		}
		if a.Gone != res.Gone() || a.Moved != res.Moved() || a.Gone < had || a.Gone > had && a.New > 0 {
			t.Fatalf("seed %d: %+v is not the result's: %v gone, %v before", seed, a, res.Gone(), had)
		}
	}
	if ended < 1000 {
		t.Errorf("only %d ended", ended)
	}
}

// A target of 120 MiB that is killed when 39 MiB have moved.
func TestAccountOfTheKilled(t *testing.T) {
	rep := Report{To: set.FromNodes(1)}
	rep.Before.Add(Anon, 0, 100*unit.MiB)
	rep.Before.Add(File, 0, 20*unit.MiB)
	var res Result
	res.Of(Anon).Moved = 39 * unit.MiB
	a := rep.Settle(&res, Census{}, func(string) bool { return false })
	if a != (Account{Task: 120 * unit.MiB, Moved: 39 * unit.MiB, Gone: 81 * unit.MiB}) || res.Of(Anon).Gone != 61*unit.MiB || res.Of(File).Gone != 20*unit.MiB {
		t.Errorf("%+v, %+v", a, res)
	}
}
