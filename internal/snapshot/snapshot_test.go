// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"reflect"
	"testing"

	"homenode/internal/unit"
)

// By kind: named on the wire, unknown is null, and wrong input leaves nothing.
func TestByKindJSON(t *testing.T) {
	in := ByKind{Heap: {1, 2}, Huge: {0, 4096}}
	data, err := json.Marshal(in)
	const want = `{"heap":[1,2],"stack":null,"anon":null,"shared":null,"file":null,"huge":[0,4096]}`
	if err != nil || string(data) != want {
		t.Fatalf("%s, %v", data, err)
	}
	var back ByKind
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, in) {
		t.Errorf("%v, %v", back, err)
	}
	for _, bad := range []string{`{"heap":[1],"colour":[2]}`, `[1]`, `{"heap":"x"}`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil || !reflect.DeepEqual(back, ByKind{}) {
			t.Errorf("%s: %v, %v", bad, back, err)
		}
	}
}

func TestProcessTotal(t *testing.T) {
	p := Process{ByKind: ByKind{Heap: {1, 2}, Anon: {3, 0}, Stack: {0, 0}, Shared: {0, 0}, File: {0, 0}, Huge: {0, 5}}}
	if !p.Known() || p.Total() != 11 || !reflect.DeepEqual(p.Bytes(), []unit.Bytes{4, 7}) || (Process{}).Known() || (Process{}).Total() != 0 {
		t.Errorf("%v, %v", p.Total(), p.Bytes())
	}
}

// An unknown kind adds nothing, in any position.
func TestBytesOfSomeKinds(t *testing.T) {
	var p Process
	if p.Bytes() != nil {
		t.Errorf("nothing is known: %v", p.Bytes())
	}
	p.ByKind[Anon], p.ByKind[File] = []unit.Bytes{1, 2}, []unit.Bytes{10, 20}
	if got := p.Bytes(); len(got) != 2 || got[0] != 11 || got[1] != 22 || p.Total() != 33 {
		t.Errorf("%v", got)
	}
}
