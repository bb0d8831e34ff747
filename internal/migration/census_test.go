// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// Foreign and own memory add up to all of it, wherever it is.
func TestPropertyOwn(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		var c, foreign Census
		for range r.IntN(12) {
			k, node, b := Kinds()[r.IntN(len(Kinds()))], r.IntN(4), unit.Bytes(1+r.IntN(100))*2*unit.MiB
			others := b / unit.Bytes(1+r.IntN(3)) * unit.Bytes(r.IntN(2))
			if size := 2 * unit.MiB << (9 * r.IntN(2)); k == Hugetlb {
				c.AddPool(size, node, b)
				c.AddForeignPool(size, node, others)
			} else {
				c.Add(k, node, b)
				c.AddForeign(k, node, others)
			}
			foreign.Add(k, node, others)
		}
		was := fmt.Sprint(c)
		own := c.Own()
		to := set.FromNodes(r.IntN(4))
		if own.Total()+foreign.Total() != c.Total() || foreign.Total() != c.Foreign.Or(0) || own.Elsewhere(set.NodeSet{}, to)+foreign.Elsewhere(set.NodeSet{}, to) != c.Elsewhere(set.NodeSet{}, to) {
			t.Fatalf("own %+v and foreign %+v are not %+v", own, foreign, c)
		}
		var pools unit.Bytes
		for _, p := range own.Pools {
			pools += p.Elsewhere(set.NodeSet{}, to)
		}
		if row, _ := own.Of(Hugetlb); pools != row.Elsewhere(set.NodeSet{}, to) {
			t.Fatalf("pools %v, row %v", own.Pools, row)
		}
		if fmt.Sprint(c) != was {
			t.Fatalf("it was %s, and is %s", was, fmt.Sprint(c))
		}
		var back Census
		if text, err := json.Marshal(c); err != nil || json.Unmarshal(text, &back) != nil || !reflect.DeepEqual(back.Own(), own) {
			t.Fatalf("through JSON: %+v, was %+v", back, c)
		}
	}
}
