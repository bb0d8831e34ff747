// SPDX-License-Identifier: Apache-2.0

package decisions

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const line = `{"schema":2,"at":"2026-01-01T00:00:12Z","seq":12,"action":"bind /demo/a to nodes 1","kind":"bind","workload":"/demo/a","service":"a","nodes":"1","reason":{"rule":"mao.bind","workload":"/demo/a","nodes":"1","numbers":[{"name":"local_access_ratio","value":{"value":0.5,"how":"modelled","from":"perf r01d3"},"limit":0.9,"unit":"ratio"}],"alternatives":[{"nodes":"0","code":"cpu","figures":[{"name":"cpu_needed","value":1.6},{"name":"cpu_left","value":1.2}]},{"nodes":"1","code":"","figures":[{"name":"cost","value":0.25}],"chosen":true}]}}`

func TestDecodeDecision(t *testing.T) {
	e, err := Decode([]byte(line))
	if err != nil || e.Workload != "/demo/a" || e.Kind != action.Bind || len(e.Reason.Alternatives) != 2 || e.Reason.Numbers[0].Value.How != unit.HowModelled {
		t.Fatalf("%+v, %v", e, err)
	}
	var out bytes.Buffer
	if err := Write(&out, e); err != nil || strings.TrimSpace(out.String()) != line {
		t.Errorf("%v\n%s\n%s", err, out.String(), line)
	}
	for text, want := range map[string]string{
		"x": "parse decision", "{}": "schema 0", `{"schema":2}`: "kind", `{"schema":9,"kind":"bind"}`: "schema 9", `{"schema":1,"kind":"bind"}`: "schema 1",
		`{"schema":2,"kind":"bind","workload":"/a","reason":{"rule":"r"},"nodes":"z"}`: "parse decision",
	} {
		if e, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || !reflect.DeepEqual(e, Entry{}) {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
}

// A refusal is logged when it is new, an action always.
func TestDecisionOf(t *testing.T) {
	w := window.Window{Seq: 3, At: time.Unix(9, 0), Workloads: []window.Workload{{ID: "/a", Service: "s"}, {ID: "/b"}, {ID: "/c"}}}
	why := func(id, rule string, alternatives int) action.Reason {
		return action.Reason{Rule: rule, Workload: id, Alternatives: make([]action.Alternative, alternatives)}
	}
	bind := action.Action{Kind: action.Bind, Workload: "/a", Nodes: set.FromNodes(1), Reason: why("/a", "mao.bind", 2)}
	reasons := []action.Reason{bind.Reason, why("/b", "mao.skip.full", 2), why("/c", "mao.keep.on-target", 0)}
	got, before := Of(w, []action.Action{bind}, reasons, nil)
	if len(got) != 2 || got[0].Service != "s" || got[0].Kind != action.Bind || got[1].Workload != "/b" || got[1].Kind != NoAction {
		t.Fatalf("%+v", got)
	}
	if got, _ = Of(w, nil, reasons[1:], before); len(got) != 0 {
		t.Errorf("again: %+v", got)
	}
	reasons[1].Rule = "mao.skip.other"
	if got, _ = Of(w, nil, reasons[1:], before); len(got) != 1 {
		t.Errorf("another rule: %+v", got)
	}
}

func TestReadDecisions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.jsonl")
	all := func(Key) bool { return true }
	if _, _, err := Read(path, all, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	f, err := OpenFile(FileOptions{Path: path, Max: 400, Keep: 20})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		e := Entry{Schema: Schema, Seq: uint64(i), Kind: action.Bind, Workload: fmt.Sprintf("/w%d", i%2), Reason: action.Reason{Rule: "r"}}
		if err := Write(f, e); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprint(f, "{\"half\n\n")
	f.Close()
	got, skipped, err := Read(path, all, 0)
	if err != nil || len(got) != 20 || skipped != 1 || got[0].Seq != 0 || got[19].Seq != 19 {
		t.Errorf("%d entries, %d skipped, %v", len(got), skipped, err)
	}
	got, _, err = Read(path, func(k Key) bool { return k.Workload == "/w1" }, 3)
	if err != nil || len(got) != 3 || got[0].Seq != 15 || got[2].Seq != 19 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A search for a few entries does not keep the whole log in memory.
func TestReadDecisionsIsSmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	const size = 8 << 20
	for written := 0; written < size; written += len(line) + 1 {
		fmt.Fprintln(f, line)
	}
	f.Close()
	var before, at runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	lines, most := 0, uint64(0)
	got, _, err := Read(path, func(Key) bool {
		if lines++; lines%4000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&at)
			most = max(most, at.HeapAlloc)
		}
		return true
	}, 3)
	if err != nil || len(got) != 3 || lines < 8000 {
		t.Fatalf("%d entries of %d lines, %v", len(got), lines, err)
	}
	if most > before.HeapAlloc+1<<20 {
		t.Errorf("%d bytes are held while 3 entries are looked for", most-before.HeapAlloc)
	}
}

func TestNewest(t *testing.T) {
	n := newest{most: 3}
	for i := range 8 {
		n.keep(fmt.Append(nil, i))
	}
	if got := string(bytes.Join(n.inOrder(), nil)); got != "567" || n.bytes != 3 {
		t.Errorf("%q, %d bytes", got, n.bytes)
	}
	n.keep(make([]byte, mostBytes))
	if len(n.inOrder()) != 1 || n.bytes != mostBytes {
		t.Errorf("%d lines, %d bytes", len(n.lines), n.bytes)
	}
	n.keep([]byte("8"))
	n.keep([]byte("9"))
	if got := n.inOrder(); len(got) != 2 || string(got[1]) != "9" {
		t.Errorf("%d lines", len(got))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(line))
	f.Add([]byte(`{"schema":2,"kind":"none","workload":"/a","reason":{"rule":"r"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := Decode(text)
		if err != nil {
			if !reflect.DeepEqual(e, Entry{}) {
				t.Errorf("%q: an error and %+v", text, e)
			}
			return
		}
		var out bytes.Buffer
		if err := Write(&out, e); err != nil {
			t.Fatal(err)
		}
		again, err := Decode(out.Bytes())
		if err != nil || !again.At.Equal(e.At) || again.Workload != e.Workload || again.Seq != e.Seq {
			t.Errorf("%q: %+v, %v", text, again, err)
		}
		found, skipped, err := Scan(bytes.NewReader(out.Bytes()), func(Key) bool { return true }, 0)
		if err != nil || len(found) != 1 || skipped != 0 {
			t.Errorf("%d found, %d skipped, %v", len(found), skipped, err)
		}
	})
}

// Workloads whose names differ only in bytes that are no text stay apart in the log.
func TestDecisionOfNamesOfBytes(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{"/x\xfe", "/x\xff", `/x\xff`} {
		r := action.Reason{Rule: "mao.bind", Workload: id, Other: id}
		all, _ := Of(window.Window{}, []action.Action{{Kind: action.Unbind, Workload: id, Reason: r}}, nil, nil)
		var out bytes.Buffer
		if err := Write(&out, all[0]); err != nil {
			t.Fatal(err)
		}
		e, err := Decode(bytes.TrimSpace(out.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{e.Workload, e.Reason.Workload, e.Reason.Other} {
			if schema.Path(name) != id && name != id {
				t.Errorf("%q is %q in %s", id, name, out.String())
			}
		}
		if strings.ContainsRune(out.String(), '\uFFFD') || seen[e.Action] {
			t.Errorf("%q: %s", id, out.String())
		}
		seen[e.Action] = true
	}
}
