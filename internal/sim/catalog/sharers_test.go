// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"

	"homenode/internal/sim"
)

// The generator is frozen: models are fitted on what this version draws. A change of this
// digest is a new SharersVersion.
func TestSharersFrozen(t *testing.T) {
	h := sha256.New()
	for _, s := range GenerateSharers(1, 80) {
		data, err := json.Marshal(struct {
			Application, Kind string
			Input             int
			Spec              sim.Spec
		}{s.Application, s.Kind, s.Input, s.Spec(s.Name, 16, 0)})
		if err != nil {
			t.Fatal(err)
		}
		h.Write(data)
	}
	const want = "v1 5a3f3c1fbafdfcd37b1f9fa0"
	if got := fmt.Sprintf("v%d %x", SharersVersion, h.Sum(nil)[:12]); got != want {
		t.Errorf("the generator draws %s, was %s: give it a new version", got, want)
	}
}

func TestSharers(t *testing.T) {
	all, names, kinds := GenerateSharers(7, 24), map[string]bool{}, map[string]int{}
	if len(all) != 24*SharerInputs {
		t.Fatalf("%d workloads of 24 applications", len(all))
	}
	for i, s := range all {
		names[s.Name] = true
		kinds[s.Kind]++
		if s.Input != i%SharerInputs+1 {
			t.Errorf("%s is input %d", s.Name, s.Input)
		}
		for _, b := range []string{FourNodes, Opteron} {
			builtin, _ := MachineNamed(b)
			m, _ := builtin.Make()
			for _, p := range s.Spec(s.Name, 24, 0).Validate(m) {
				t.Errorf("%s on %s: %s", s.Name, b, p)
			}
		}
	}
	if len(names) != len(all) || len(kinds) != len(SharerKinds()) {
		t.Errorf("%d names of %d workloads, kinds %v", len(names), len(all), kinds)
	}
	if again := GenerateSharers(7, 8); fmt.Sprint(again[5].Spec("x", 4, 0)) != fmt.Sprint(all[5].Spec("x", 4, 0)) {
		t.Error("more applications change the first ones")
	}
	if other := GenerateSharers(8, 8); fmt.Sprint(other[5].Spec("x", 4, 0)) == fmt.Sprint(all[5].Spec("x", 4, 0)) {
		t.Error("two seeds draw the same")
	}
}
