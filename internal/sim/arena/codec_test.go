// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"homenode/internal/schema"
)

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*Result)
		want   string
	}{
		{func(r *Result) { r.Schema = 0 }, "schema 0"},
		{func(r *Result) { r.How = "measured" }, `how is "measured"`},
		{func(r *Result) { r.Machines[1].Name = "one" }, "machine 1"},
		{func(r *Result) { r.Policies[0].Name = " " }, "policy 0"},
		{func(r *Result) { r.Mixes[0].LastsS = -1 }, "seconds"},
		{func(r *Result) { r.Seeds[1] = 1 }, "twice"},
		{func(r *Result) { r.Against = "x" }, "against"},
		{func(r *Result) { r.Cells = r.Cells[1:] }, "cell 0"},
		{func(r *Result) { r.Cells = r.Cells[:5] }, "cell 5"},
		{func(r *Result) { r.Cells[0], r.Cells[1] = r.Cells[1], r.Cells[0] }, "cell 0"},
		{func(r *Result) { r.Cells[3].Pins = -1 }, "negative"},
		{func(r *Result) { r.Cells[3].LocalRatio = 1.5 }, "local_ratio"},
		{func(r *Result) { r.Cells[3].Apps[1].ID = "/a" }, "ascending"},
		{func(r *Result) { r.Cells[3].Apps[1].Ops = 1e300 }, "app /b"},
		{func(r *Result) { r.Cells[3].Apps[1].Fairness = 2 }, "app /b"},
		{func(r *Result) { r.Rows = []Row{{Paper: "p", Statement: "s", Sentence: "s", Verdict: "maybe"}} }, "verdict"},
		{func(r *Result) { r.Rows = []Row{{Paper: "p", Verdict: Confirmed}} }, "sentence"},
	} {
		r := run(t, toyPlan(), 2)
		c.change(&r)
		if _, err := Encode(r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("written: %v, want %s", err, c.want)
		}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Decode(data); err == nil || !strings.Contains(err.Error(), c.want) || !reflect.DeepEqual(got, Result{}) {
			t.Errorf("read: %v, want %s", err, c.want)
		}
	}
	if _, err := Decode([]byte(`{"schema": 2, "new": 1}`)); !errors.Is(err, schema.ErrNewer) {
		t.Errorf("%v, want that it is newer", err)
	}
	for _, text := range []string{"", "{", "[]", `{"schema":1}`, `{"schema":1,"how":"modelled","beauty":1}`, `{"schema":1,"how":"modelled"} x`} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	if _, err := Decode([]byte(`{"schema":1,"how":"modelled","rows":[{"paper_name":"p","statement":"s","theirs":"1","our_result":"1","judged":"confirmed","sentence":"so"}]}`)); err != nil {
		t.Errorf("rows only: %v", err)
	}
}

// Seeds are short: inputs that find new code are minimised first, which takes time that
// grows with the square of their length; a whole result took minutes each.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"schema":1,"how":"modelled","machines":[{"name":"m"}],"mixes":[{"name":"x"}],"policies":[{"name":"p"}],"against":"p","seeds":[1],` +
		`"cells":[{"machine":"m","mix":"x","policy":"p","seed":1,"apps":[{"id":"a","ops_per_s":2}]}]}`))
	f.Add([]byte(`{"schema":1,"how":"modelled","rows":[{"paper":"p","statement":"s","verdict":"confirmed","sentence":"w","target":true}]}`))
	f.Add([]byte(`{"schema":1,"how":"modelled"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			if !reflect.DeepEqual(r, Result{}) {
				t.Fatalf("%v, and %+v", err, r)
			}
			return
		}
		again, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := Encode(back); err != nil || !bytes.Equal(again, twice) {
			t.Fatalf("%v\n%s\n%s", err, again, twice)
		}
		sum := Summarise(r)
		for _, k := range append(sum.Rankings, sum.Overall) { // every figure can be shown
			for _, p := range k.Places {
				if math.IsNaN(p.Speed.Median) || math.IsInf(p.Speed.Median, 0) {
					t.Fatalf("%+v", p)
				}
			}
		}
	})
}
