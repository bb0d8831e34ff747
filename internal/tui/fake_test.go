// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// fakeFour is a host of four nodes on which four services are brought home. It
// also has a batch job, a system service and a pinned pod: 60 windows of 2 s.
const fakeFour = `
machine nodes=4 cpus=8 mem=32GiB
distances 10,16,16,22 16,10,22,16 16,22,10,16 22,16,16,10
workload /demo/redis-a approved target=0.9 cpu=3.2 anon=0,0,6GiB,1GiB file=200MiB,0,0,0 local=600000000 remote=2400000000 cycles=19000000000 stalls=9800000000 mems=0-3
workload /demo/redis-b approved target=0.9 cpu=2.1 anon=4GiB,0,0,0 file=0,0,0,120MiB local=300000000 remote=1200000000 cycles=13000000000 stalls=6100000000 mems=0-3
workload /demo/web-a approved target=0.85 cpu=4.4 anon=1GiB,2GiB,1GiB,0 file=0,2GiB,0,0 local=100000000 remote=300000000 cycles=26000000000 stalls=5200000000 mems=0-3
workload /demo/web-b approved target=0.85 cpu=1.3 anon=512MiB,1GiB,0,0 file=300MiB,0,0,0 local=50000000 remote=150000000 cycles=8000000000 stalls=1900000000 mems=0-3
workload /batch/etl-nightly cpu=6.5 anon=1GiB,1GiB,2GiB,1GiB file=3GiB,9GiB,1GiB,2GiB local=? remote=? cycles=? stalls=? mems=0-3
workload /kubepods.slice/pod7f3c/search cpu=2.9 cpus=24-31 anon=0,0,0,3GiB file=0,0,0,1GiB local=500000000 remote=4000000 cycles=17000000000 stalls=3000000000 mems=3 pinned-cpus=its-own-cpuset.cpus-is-24-31
workload /system.slice/sshd.service cpu=0.02 anon=12MiB,0,0,0 file=8MiB,0,0,0 local=? remote=? cycles=? stalls=? mems=0-3
workload /system.slice/journald.service cpu=? on=? anon=? file=? local=? remote=? cycles=? stalls=?
`

type bind struct {
	id   string
	node int
}

var fakeBinds = map[int]bind{8: {"/demo/redis-a", 0}, 16: {"/demo/redis-b", 1}, 26: {"/demo/web-a", 2}, 36: {"/demo/web-b", 3}}

// play makes a recording: the script's world, moved by actuate, with small
// variations that are the same every time.
func play(t testing.TB, script string, windows int, binds map[int]bind) window.Recording {
	t.Helper()
	h := &windowtest.Host{Length: 2 * time.Second}
	for _, line := range strings.Split(strings.TrimSpace(script), "\n") {
		if _, err := h.Line(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	rec := window.Recording{Machine: h.Machine, Period: h.Length}
	var st actuate.State
	var steps []action.Step
	cfg := actuate.DefaultConfig()
	for i := range windows {
		w := h.Window()
		var wanted []action.Action
		if b, ok := binds[i]; ok {
			wanted = append(wanted, action.Action{Kind: action.Bind, Workload: b.id, Nodes: set.FromNodes(b.node), Reason: action.Reason{Rule: "test.bind"}})
		}
		st, steps, _ = actuate.Step(h.Machine, cfg, st, wanted, w)
		h.Apply(steps)
		rec.Windows = append(rec.Windows, dress(w, i))
	}
	return rec
}

// dress names the sources and makes CPU use vary.
func dress(w window.Window, i int) window.Window {
	for k := range w.Workloads {
		wl := &w.Workloads[k]
		f := 1 + 0.12*math.Sin(float64(i)*0.7+float64(k)*1.3) + 0.05*math.Sin(float64(i)*2.1+float64(k))
		wl.CPU = vary(wl.CPU, f, "cpu.stat")
		wl.CPUByNode = append([]unit.Value[float64](nil), wl.CPUByNode...)
		for n := range wl.CPUByNode {
			wl.CPUByNode[n] = vary(wl.CPUByNode[n], f, "perf task-clock")
		}
		for _, by := range []*[]unit.Value[unit.Bytes]{&wl.AnonByNode, &wl.FileByNode} {
			*by = append([]unit.Value[unit.Bytes](nil), *by...)
			for n, v := range *by {
				if v.Known() {
					(*by)[n].From = "memory.numa_stat"
				}
			}
		}
		for _, c := range []*unit.Value[uint64]{&wl.LocalLoads, &wl.RemoteLoads, &wl.Cycles, &wl.StallCycles} {
			if v, ok := c.Get(); ok {
				*c = unit.Modelled(uint64(float64(v)*f), "perf")
			} else {
				c.From = "no event table"
			}
		}
		service, _, _ := strings.Cut(strings.TrimPrefix(wl.ID, "/demo/"), "-")
		if strings.HasPrefix(wl.ID, "/demo/") {
			wl.Service = service
		}
		if strings.HasPrefix(wl.ID, "/system.slice") {
			wl.Owner = "systemd"
		}
	}
	for n := range w.Nodes { // memory of the kernel and its slabs
		node := &w.Nodes[n]
		node.Free = unit.Measured(max(0, node.Free.Or(0)-unit.Bytes(900+100*n)*unit.MiB), "meminfo")
	}
	return w
}

func vary(v unit.Value[float64], f float64, from string) unit.Value[float64] {
	c, ok := v.Get()
	if !ok {
		return unit.UnknownValue[float64]("read cpu.stat: permission denied")
	}
	return unit.Measured(math.Round(c*f*1000)/1000, from)
}

// four is the committed recording. If it was deleted, it is made again. So goldens can be
// updated without a change of the recording.
func four(t testing.TB) window.Recording {
	t.Helper()
	path := filepath.Join("testdata", "fake-four.jsonl.gz")
	if _, err := os.Stat(path); os.IsNotExist(err) {
		write(t, path, play(t, fakeFour, 60, fakeBinds))
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rec, err := window.ReadRecording(f)
	if err != nil || len(rec.Windows) != 60 {
		t.Fatalf("%d windows, %v", len(rec.Windows), err)
	}
	return rec
}

func write(t testing.TB, path string, rec window.Recording) {
	t.Helper()
	var out bytes.Buffer
	r, err := window.NewRecorder(&out, rec.Machine, rec.Period)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range rec.Windows {
		if err := r.Add(w); err != nil {
			t.Fatal(err)
		}
	}
	var zipped bytes.Buffer
	z, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if _, err := z.Write(out.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, zipped.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
