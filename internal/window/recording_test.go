// SPDX-License-Identifier: Apache-2.0

package window

import (
	"bytes"
	"compress/gzip"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/unit"
)

func sampleMachine() machine.Machine {
	d := func(n int) unit.Opt[int] { return unit.Some(n) }
	return machine.Machine{
		Origin:    "fake:two",
		Nodes:     []machine.Node{{ID: 0, CPUs: set.FromCPUs(0, 1), Memory: unit.Some(unit.GiB)}, {ID: 2, CPUs: set.FromCPUs(4, 5)}},
		Distances: [][]unit.Opt[int]{{d(10), d(21)}, {d(21), unit.None[int]()}},
		CPUs:      []machine.CPU{{ID: 0, Node: d(0), Online: true}, {ID: 4, Node: d(2)}},
	}
}

func recorded(t testing.TB, windows int) []byte {
	var out bytes.Buffer
	r, err := NewRecorder(&out, sampleMachine(), 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for i := range windows {
		w := sample()
		w.Seq = uint64(i + 1)
		if err := r.Add(w); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func TestRecordingReadsBack(t *testing.T) {
	text := recorded(t, 3)
	if n := bytes.Count(text, []byte("\n")); n != 4 {
		t.Fatalf("%d lines, want a header and 3 windows", n)
	}
	got, err := ReadRecording(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Machine, sampleMachine()) || got.Period != 2*time.Second || got.CutOff != "" {
		t.Errorf("header: %+v", got)
	}
	want := sample()
	want.Seq = 3
	if len(got.Windows) != 3 || !reflect.DeepEqual(got.Windows[2], want) {
		t.Errorf("windows: %+v", got.Windows)
	}
	if err := (&Recorder{&bytes.Buffer{}}).Add(Window{}); err == nil {
		t.Error("a window without a schema was recorded")
	}
}

// A kill may end the file anywhere within a line: all windows before it count.
func TestRecordingCutOff(t *testing.T) {
	text := recorded(t, 2)
	second := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
	for end := second; end <= len(text); end++ {
		got, err := ReadRecording(bytes.NewReader(text[:end]))
		if err != nil {
			t.Fatalf("cut at %d: %v", end, err)
		}
		whole := end >= len(text)-1 // the newline itself may be missing
		if cut := got.CutOff != ""; cut != (end > second && !whole) || (len(got.Windows) == 2) != whole {
			t.Fatalf("cut at %d of %d: %d windows, %q", end, len(text), len(got.Windows), got.CutOff)
		}
	}
	got, _ := ReadRecording(bytes.NewReader(append(bytes.Clone(text), 0, 0, 0)))
	if want := "line 4 is cut off after 3 bytes"; !strings.Contains(got.CutOff, want) {
		t.Errorf("%q, want %q", got.CutOff, want)
	}
}

// Gzipped, it reads the same; cut off anywhere, it gives whole windows or an error.
func TestRecordingGzipped(t *testing.T) {
	text := recorded(t, 40)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	want, _ := ReadRecording(bytes.NewReader(text))
	got, err := ReadRecording(bytes.NewReader(zipped.Bytes()))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%d windows, %v", len(got.Windows), err)
	}
	saved := 0
	for end := range zipped.Len() {
		got, err := ReadRecording(bytes.NewReader(zipped.Bytes()[:end]))
		if err != nil && !reflect.DeepEqual(got, Recording{}) || err == nil && got.CutOff == "" {
			t.Fatalf("cut at %d of %d: %d windows, %q, %v", end, zipped.Len(), len(got.Windows), got.CutOff, err)
		}
		if len(got.Windows) > 0 {
			saved++
		}
	}
	if saved == 0 {
		t.Error("nothing cut off gave any window")
	}
	if _, err := ReadRecording(strings.NewReader("\x1f\x8bnot gzip")); err == nil || !strings.Contains(err.Error(), "begins as gzip does") {
		t.Errorf("%v", err)
	}
}

func TestRecordingRefuses(t *testing.T) {
	lines := strings.SplitAfter(string(recorded(t, 2)), "\n")
	edit := func(old, new string) string { return strings.Replace(lines[0], old, new, 1) + lines[1] }
	for _, c := range []struct{ in, want string }{
		{"", "line 1 \"\": no header"},
		{"\n", "line 1"},
		{"{}", `kind is ""`},
		{lines[1], `kind is ""`},
		{lines[0][:40], "line 1"},
		{lines[0] + "rubbish\n" + lines[1], `line 2 "rubbish": parse window`},
		{lines[0] + "\n" + lines[1], `line 2 ""`},
		{lines[0] + lines[1] + lines[0] + lines[2], `line 3 "{\"schema\":1,\"kind\"`},
		{lines[0] + `{"schema":9}`, "written by a newer homenode"},
		{edit(`"schema":1`, `"schema":3,"new":1`), "schema 3, this homenode reads up to 2: written by a newer homenode"},
		{edit(`"schema":1`, `"schema":0`), "want 1 to 2"},
		{edit(`"kind"`, `"host":"x","kind"`), `unknown field "host"`},
		{edit(`"period_ns":2000000000`, `"period_ns":-2`), "period -2ns is negative"},
		{edit(`"nodes":[{"id":0`, `"nodes":[{"id":7`), "node 2 at position 1"},
		{edit(`"cpus":[{"id":0`, `"cpus":[{"id":7`), "cpu 4 at position 1"},
	} {
		got, err := ReadRecording(strings.NewReader(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) || !reflect.DeepEqual(got, Recording{}) {
			t.Errorf("%.60q: %+v, %v; want an error with %q", c.in, got, err, c.want)
		}
	}
	if _, err := ReadRecording(strings.NewReader(edit(`"schema":1`, `"schema":3`))); !errors.Is(err, schema.ErrNewer) {
		t.Errorf("got %v, want ErrNewer", err)
	}
	if _, err := ReadRecording(strings.NewReader(strings.Repeat("x", maxRecordingLine+1))); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("an endless line: %v", err)
	}
}

// A header with a configuration is of another schema, so that older programs say so.
func TestRecordingConfig(t *testing.T) {
	var out bytes.Buffer
	rec, err := ReadRecording(bytes.NewReader(recorded(t, 1)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRecorderOf(&out, rec.Machine, rec.Period, "period: 2s\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Add(rec.Windows[0]); err != nil {
		t.Fatal(err)
	}
	again, err := ReadRecording(&out)
	if err != nil || again.Config != "period: 2s\n" || len(again.Windows) != 1 {
		t.Errorf("%+v, %v", again, err)
	}
	if plain := string(recorded(t, 1)); !strings.HasPrefix(plain, `{"schema":1,`) {
		t.Errorf("one without: %.40s", plain)
	}
}

// Seeds are short: Go minimises each new input by as many runs as the square of its length,
// and with whole windows a fresh corpus got six runs in 15 s.
func FuzzReadRecording(f *testing.F) {
	const head = `{"schema":1,"kind":"homenode-windows","period_ns":1,"machine":{"nodes":[{"id":3}]}}` + "\n"
	const one = `{"schema":1,"seq":1,"nodes":[{"id":3}],"workloads":[{"id":"/a","tasks":{"v":1,"how":"measured"}}]}` + "\n"
	for _, text := range []string{
		head, head + one, head + one[:50], head + `{"schema":1,"seq":2,"problems":["x"]}` + "\n",
		head + `{"schema":1,"seq":1,"workloads":[{"id":"/b"},{"id":"bytes:/a\\xff"},{"id":"bytes:/b"}]}` + "\n",
		`{"schema":3,"kind":"homenode-windows"}`,
		`{"schema":2,"kind":"homenode-windows","period_ns":1,"machine":{},"config":"period: 1s\n"}` + "\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) { readsBackRecording(t, data) })
}

// Whole windows, and what is left of them when the last one is cut off.
func TestWholeRecordingReadsBack(t *testing.T) {
	good := recorded(t, 2)
	readsBackRecording(t, good)
	readsBackRecording(t, good[:len(good)-100])
}

func readsBackRecording(t *testing.T, data []byte) {
	rec, err := ReadRecording(bytes.NewReader(data))
	if err != nil {
		if !reflect.DeepEqual(rec, Recording{}) {
			t.Fatalf("error and value: %+v", rec)
		}
		return
	}
	var out bytes.Buffer
	r, err := NewRecorderOf(&out, rec.Machine, rec.Period, rec.Config)
	for _, w := range rec.Windows {
		err = errors.Join(err, r.Add(w))
	}
	again, err2 := ReadRecording(&out)
	if err := errors.Join(err, err2); err != nil {
		t.Fatalf("read but not written again: %v", err)
	}
	rec.CutOff = ""
	a, _ := textOf(rec)
	b, _ := textOf(again)
	if !bytes.Equal(a, b) {
		t.Fatalf("not stable:\n%s\n%s", a, b)
	}
}

// textOf is a recording as text.
func textOf(rec Recording) ([]byte, error) {
	var out bytes.Buffer
	r, err := NewRecorderOf(&out, rec.Machine, rec.Period, rec.Config)
	for _, w := range rec.Windows {
		err = errors.Join(err, r.Add(w))
	}
	return out.Bytes(), err
}

// Cgroups whose names differ only in bytes that are no text stay apart in a recording: each
// is read back with its own bytes, in workloads and outcomes.
func TestRecordingOfNamesOfBytes(t *testing.T) {
	ids := []string{"/demo/a", `/demo/x\xff`, "/demo/x\xfe", "/demo/x\xff", "/demo/x\uFFFD"}
	slices.Sort(ids)
	w := Window{Schema: Schema, Seq: 1}
	for i, id := range ids {
		cause := action.Reason{Rule: "r", Workload: id, Other: ids[0]}
		w.Workloads = append(w.Workloads, Workload{ID: id, Owner: strconv.Itoa(i)})
		w.Outcomes = append(w.Outcomes, action.Outcome{
			Step: action.Step{Kind: action.SetMems, Workload: id, Reason: action.Reason{Rule: "r", Workload: id, Other: ids[0]}.Because(cause)}, Why: cause,
		})
	}
	var out bytes.Buffer
	r, err := NewRecorder(&out, machine.Machine{}, time.Second)
	if err = errors.Join(err, r.Add(w)); err != nil {
		t.Fatal(err)
	}
	rec, err := ReadRecording(&out)
	if err != nil || len(rec.Windows) != 1 {
		t.Fatalf("%d windows, %v", len(rec.Windows), err)
	}
	got := rec.Windows[0]
	for i, id := range ids {
		if wl, o := got.Workloads[i], got.Outcomes[i]; wl.ID != id || wl.Owner != strconv.Itoa(i) || o.Step.Workload != id || o.Step.Reason.Cause.Workload != id || o.Why.Workload != id || o.Why.Other != ids[0] {
			t.Errorf("%q is read back as %q, %q", id, wl.ID, o.Step.Workload)
		}
	}
	if w.Workloads[0].ID != ids[0] || !slices.IsSortedFunc(w.Workloads, func(a, b Workload) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("writing changed the window")
	}
}
