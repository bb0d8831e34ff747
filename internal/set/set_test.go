// SPDX-License-Identifier: Apache-2.0

package set

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestDecodeList(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {"\n", ""}, {"0\n", "0"}, {"0-3,8\n", "0-3,8"},
		{"8,0-3", "0-3,8"}, {"0,1,2", "0-2"}, {"5-5", "5"}, {" 0-1, 3 ", "0-1,3"},
		{"0-7\n\x00\x00\x00", "0-7"}, {"\x00\x00", ""},
		{"0-31:2/8", "0-1,8-9,16-17,24-25"}, {"1-9:1/4", "1,5,9"}, {"0-3:0/4", ""},
		{"8191", "8191"}, {"007", "7"}, {"0-1,1-2", "0-2"},
	} {
		got, err := ParseCPUs(c.in)
		if err != nil || got.String() != c.want {
			t.Errorf("ParseCPUs(%q) = %q, %v; want %q", c.in, got, err, c.want)
		}
	}
}

func TestDecodeListRefuses(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"0-3,x", `parse cpu list "0-3,x": field 2 "x": not a decimal number`},
		{"1,,2", `parse cpu list "1,,2": field 2 "": empty field`},
		{"3-1", `parse cpu list "3-1": field 1 "3-1": the range ends before it starts`},
		{"8192", `parse cpu list "8192": field 1 "8192": cpu ids end at 8191`},
		{"0-99999999999999999999", `field 1 "0-99999999999999999999": cpu ids end at 8191`},
		{"0-3:5/4", "stride"}, {"0-3:1/0", "stride"}, {"0-3:1", "stride"}, {"0-3:/", "stride"},
		{"-1", "not a decimal"}, {"1-", "not a decimal"}, {"+1", "not a decimal"}, {"0x1", "not a decimal"},
		{"1 2", "not a decimal"}, {"1\n2", "not a decimal"}, {"1\x002", "not a decimal"}, {"all", "not a decimal"}, {",", "empty"},
		{strings.Repeat("y", 99), "…"},
	} {
		got, err := ParseCPUs(c.in)
		if err == nil || !strings.Contains(err.Error(), c.want) || !got.IsEmpty() {
			t.Errorf("ParseCPUs(%q) = %q, %v; want error with %q", c.in, got, err, c.want)
		}
	}
	if _, err := ParseNodes("1024"); err == nil || !strings.Contains(err.Error(), "node ids end at 1023") {
		t.Errorf("ParseNodes(1024): %v", err)
	}
}

func TestDecodeMask(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"ff", "0-7"}, {"00000000,000000ff\n", "0-7"}, {"0000,00000011,11111111", "0,4,8,12,16,20,24,28,32,36"},
		{"0", ""}, {"00000001,00000000", "32"}, {"80000000", "31"}, {"f\x00\x00", "0-3"},
		{strings.Repeat("00000000,", 300) + "3", "0-1"},
	} {
		got, err := ParseCPUMask(c.in)
		if err != nil || got.String() != c.want {
			t.Errorf("ParseCPUMask(%q) = %q, %v; want %q", c.in, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "g", "0x1", "+1", "123456789", "1,,1", "1,", "1" + strings.Repeat(",00000000", 256)} {
		if got, err := ParseCPUMask(bad); err == nil || !got.IsEmpty() {
			t.Errorf("ParseCPUMask(%q) = %q, %v; want an error", bad, got, err)
		}
	}
}

func TestJSON(t *testing.T) {
	type row struct {
		CPUs  CPUSet         `json:"cpus"`
		Nodes NodeSet        `json:"nodes,omitzero"`
		By    map[CPUSet]int `json:"by"`
	}
	in := row{CPUs: FromCPUs(0, 1, 2, 3, 8), By: map[CPUSet]int{FromCPUs(4, 5): 1}}
	text, err := json.Marshal(in)
	if want := `{"cpus":"0-3,8","by":{"4-5":1}}`; err != nil || string(text) != want {
		t.Fatalf("got %s, %v; want %s", text, err, want)
	}
	var out row
	if err := json.Unmarshal(text, &out); err != nil || out.CPUs != in.CPUs || out.By[FromCPUs(4, 5)] != 1 {
		t.Fatalf("back: %+v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"cpus":"zero"}`), &out); err == nil || !out.CPUs.IsEmpty() {
		t.Errorf("a malformed set came back as %q, %v", out.CPUs, err)
	}
}

// Every operation against a map, the dumb twin, on seeded random sets.
func TestOperationsAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		x, mx := random(r)
		y, my := random(r)
		check(t, "union", x.Union(y), func(id int) bool { return mx[id] || my[id] })
		check(t, "intersect", x.Intersect(y), func(id int) bool { return mx[id] && my[id] })
		check(t, "minus", x.Minus(y), func(id int) bool { return mx[id] && !my[id] })
		check(t, "with", x.With(y.IDs()...), func(id int) bool { return mx[id] || my[id] })
		check(t, "without", x.Without(y.IDs()...), func(id int) bool { return mx[id] && !my[id] })
		check(t, "unchanged", x, func(id int) bool { return mx[id] })
		laws(t, x, y)
	}
}

func laws(t *testing.T, x, y CPUSet) {
	t.Helper()
	both := x.Intersect(y)
	if both.Len()+x.Union(y).Len() != x.Len()+y.Len() || x.Overlaps(y) == both.IsEmpty() {
		t.Fatalf("counts disagree: %q and %q", x, y)
	}
	if !both.SubsetOf(x) || !x.SubsetOf(x.Union(y)) || x.Minus(y).Overlaps(y) {
		t.Fatalf("subset laws broken: %q and %q", x, y)
	}
	if !x.Minus(y).Union(both).Equal(x) || x.Union(y) != y.Union(x) {
		t.Fatalf("equal sets compare unequal: %q and %q", x, y)
	}
}

func random(r *rand.Rand) (CPUSet, map[int]bool) {
	var s CPUSet
	m := map[int]bool{}
	for range r.IntN(20) {
		id := r.IntN(1 << r.IntN(8))
		s, m[id] = s.With(id), true
	}
	return s, m
}

func check(t *testing.T, what string, got CPUSet, want func(int) bool) {
	t.Helper()
	var ids []int
	for id := range 140 {
		if got.Has(id) != want(id) {
			t.Fatalf("%s: %q: Has(%d) = %v", what, got, id, got.Has(id))
		}
		if want(id) {
			ids = append(ids, id)
		}
	}
	first, ok := got.First()
	if !slices.Equal(got.IDs(), ids) || got.Len() != len(ids) || ok != (len(ids) > 0) || ok && first != ids[0] {
		t.Fatalf("%s: ids %v len %d, want %v", what, got.IDs(), got.Len(), ids)
	}
}

func TestBounds(t *testing.T) {
	s := FromCPUs(MaxCPU)
	if s.Has(-1) || s.Has(MaxCPU+1) || s.Without(-5, 99999) != s || s.Len() != 1 {
		t.Error("ids no set could hold must simply not be members")
	}
	for _, id := range []int{-1, MaxNode + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("FromNodes(%d) did not panic", id)
				}
			}()
			FromNodes(id)
		}()
	}
	for id := range FromCPUs(3, 4).All() {
		if id != 3 {
			t.Error("break did not end All")
		}
		break
	}
}

func FuzzParseCPUs(f *testing.F) {
	for _, seed := range []string{"0-3,8\n", "0-31:2/8", "", "3-1", "0-3\x00", "1,,2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseCPUs(text)
		if err != nil && !got.IsEmpty() {
			t.Fatalf("error and value: %q", got)
		}
		if again, err := ParseCPUs(got.String()); err != nil || again != got {
			t.Fatalf("%q reads back as %q, %v", got, again, err)
		}
	})
}

func FuzzParseNodes(f *testing.F) {
	f.Add("0,8,250-255")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseNodes(text)
		if err != nil && !got.IsEmpty() {
			t.Fatalf("error and value: %q", got)
		}
		if again, err := ParseNodes(got.String()); err != nil || again != got {
			t.Fatalf("%q reads back as %q, %v", got, again, err)
		}
	})
}

func FuzzParseCPUMask(f *testing.F) {
	for _, seed := range []string{"00000000,000000ff", "0000,00000011", "g", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseCPUMask(text)
		if err != nil && !got.IsEmpty() {
			t.Fatalf("error and value: %q", got)
		}
		if again, err := ParseCPUMask(got.Mask()); err != nil || again != got {
			t.Fatalf("%q reads back as %q, %v", got.Mask(), again, err)
		}
	})
}

func TestWords(t *testing.T) {
	if w := FromNodes(0, 63, 64, 130).Words(); !slices.Equal(w, []uint64{1 | 1<<63, 1, 4}) || !slices.Equal(IDsOf(w), []int{0, 63, 64, 130}) {
		t.Errorf("%x", w)
	}
	if w := (NodeSet{}).Words(); !slices.Equal(w, []uint64{0}) || len(IDsOf(w)) != 0 {
		t.Errorf("%x", w)
	}
}

func TestSameLists(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"0-1", "1,0\n", true}, {"", "\n", true}, {"0", "0-1", false}, {"x", "x", true}, {"x", "", false}, {"0", "x", false}} {
		if got := SameCPUs(c.a, c.b); got != c.want || SameNodes(c.a, c.b) != got || SameCPUs(c.b, c.a) != got {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}
