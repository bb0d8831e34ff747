// SPDX-License-Identifier: Apache-2.0

package hotness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// fakeDAMON is a tree that answers to writes as mm/damon/sysfs.c does: numbers make
// directories, state starts and stops. It is written from the documentation, and only
// proves that we follow that.
type fakeDAMON struct {
	t       *testing.T
	root    unix.Root
	ops     string // avail_operations
	noTried bool   // before Linux 6.2
	regions map[string][]span
	refuse  string // a write that fails: "path value"
	log     []string
}

func newDAMON(t *testing.T, l *search) *fakeDAMON {
	f := &fakeDAMON{t: t, root: l.root, ops: "vaddr\nfvaddr\npaddr\n", regions: map[string][]span{}}
	f.file(kdamonds+"nr_kdamonds", "0")
	l.write = f.write
	return f
}

func (f *fakeDAMON) file(path, value string) {
	kerneltest.Write(f.t, f.root, kerneltest.Files{path: value + "\n"})
}

func (f *fakeDAMON) read(path string) string {
	data, _ := os.ReadFile(f.root.Path(path))
	return strings.TrimSpace(string(data))
}

func (f *fakeDAMON) write(real, value string) error {
	path := strings.TrimPrefix(real, f.root.Path("/"))
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	f.log = append(f.log, strings.TrimPrefix(path, kdamonds)+" "+value)
	if f.refuse != "" && strings.HasPrefix(strings.TrimPrefix(path, kdamonds)+" "+value, f.refuse) {
		return sys.EINVAL
	}
	if _, err := os.Stat(real); err != nil {
		return err
	}
	f.file(path, value)
	dir := filepath.Dir(path) + "/"
	switch filepath.Base(path) {
	case "nr_kdamonds":
		return f.kdamonds(value)
	case "nr_contexts":
		f.files(dir+"0/", "operations", "vaddr", "avail_operations", f.ops, "monitoring_attrs/intervals/sample_us", "5000",
			"monitoring_attrs/intervals/aggr_us", "100000", "monitoring_attrs/intervals/update_us", "1000000",
			"monitoring_attrs/nr_regions/min", "10", "monitoring_attrs/nr_regions/max", "1000", "targets/nr_targets", "0", "schemes/nr_schemes", "0")
	case "nr_targets":
		f.files(dir+"0/", "pid_target", "0")
	case "nr_schemes":
		for _, bound := range []string{"sz", "nr_accesses", "age"} {
			f.files(dir+"0/access_pattern/"+bound+"/", "min", "0", "max", "0")
		}
		f.files(dir+"0/", "action", "stat")
		if !f.noTried {
			f.files(dir+"0/tried_regions/", "total_bytes", "0")
		}
	case "state":
		return f.state(dir, value)
	}
	return nil
}

func (f *fakeDAMON) files(dir string, namesAndValues ...string) {
	for i := 0; i < len(namesAndValues); i += 2 {
		f.file(dir+namesAndValues[i], namesAndValues[i+1])
	}
}

func (f *fakeDAMON) kdamonds(value string) error {
	old, _ := filepath.Glob(f.root.Path(kdamonds + "[0-9]*"))
	for _, dir := range old {
		if data, _ := os.ReadFile(dir + "/state"); string(data) == "on\n" {
			return sys.EBUSY
		}
		os.RemoveAll(dir)
	}
	n := 0
	fmt.Sscan(value, &n)
	for i := range n {
		f.files(path(i, ""), "state", "off", "pid", "-1", "contexts/nr_contexts", "0")
	}
	return nil
}

func (f *fakeDAMON) state(dir, value string) error {
	target := f.read(dir + "contexts/0/targets/0/pid_target")
	switch value {
	case "update_schemes_tried_regions":
		f.file(dir+"state", "on")
		for i, s := range f.regions[target] {
			f.files(fmt.Sprintf("%scontexts/0/schemes/0/tried_regions/%d/", dir, i), "start", fmt.Sprint(s.start), "end", fmt.Sprint(s.end), "nr_accesses", "3", "age", "1")
		}
	case "on":
		if f.read(dir+"contexts/0/operations") != "vaddr" {
			return sys.EINVAL
		}
	}
	return nil
}

func damonSearch(t *testing.T) (*search, *fakeDAMON) {
	l := fakeSearch(t, kerneltest.Files{
		"/proc/12/smaps": smapsOf([3]int{64, 0, 0}, [3]int{4096, 0, 2048}), "/proc/12/stat": "",
		"/proc/13/smaps": smapsOf([3]int{64, 0, 0}), "/proc/13/stat": "",
	}, Config{Sources: []string{DAMON}, For: 50 * time.Millisecond})
	return l, newDAMON(t, l)
}

// asBefore fails the test unless DAMON is untouched.
func (f *fakeDAMON) asBefore() {
	f.t.Helper()
	if left, _ := filepath.Glob(f.root.Path(kdamonds + "[0-9]*")); f.read(kdamonds+"nr_kdamonds") != "0" || len(left) > 0 {
		f.t.Errorf("DAMON was left with %s kdamonds: %v", f.read(kdamonds+"nr_kdamonds"), left)
	}
}

func TestDecisionDAMON(t *testing.T) {
	l, f := damonSearch(t)
	f.regions["12"] = []span{{base, base + 0x2000}, {second(64) + 0x201000, second(64) + 0x203000}}
	f.regions["13"] = []span{{base + 0x8000, base + 0x9000}}
	p, err := find(context.Background(), l, []int{12, 13})
	if err != nil {
		t.Fatal(err)
	}
	want := map[int][]span{12: {{base, base + 0x2000}, {second(64) + 0x1f0000, second(64) + 0x3f0000}}, 13: {{base + 0x8000, base + 0x9000}}}
	if !reflect.DeepEqual(p.spans, want) {
		t.Errorf("%x, want %x", p.spans, want)
	}
	if h := p.Heat(); h.Source != "DAMON" || h.Unit != "region" || h.How != unit.HowEstimated || h.Bytes != 0x3000+2*unit.MiB || h.Others != nil {
		t.Errorf("%+v", h)
	}
	for _, w := range []string{"1/contexts/0/targets/0/pid_target 13", "0/contexts/0/schemes/0/access_pattern/nr_accesses/min 1", "0/contexts/0/operations vaddr", "0/contexts/0/monitoring_attrs/intervals/aggr_us 20000"} {
		if !strings.Contains(strings.Join(f.log, "\n"), w) {
			t.Errorf("%q was not written: %s", w, strings.Join(f.log, "\n"))
		}
	}
	f.asBefore()
}

// Whatever fails, DAMON is put back.
func TestDecisionDAMONIsPutBack(t *testing.T) {
	l, f := damonSearch(t)
	if _, err := find(context.Background(), l, []int{12}); err != nil {
		t.Fatal(err)
	}
	writes := f.log[:len(f.log)-2] // off, none
	for i, w := range writes {
		if w == "nr_kdamonds 0" {
			continue
		}
		l, f := damonSearch(t)
		f.refuse = w
		_, err := find(context.Background(), l, []int{12})
		if err == nil {
			t.Errorf("write %d, %q, failed, and no error reported it", i, w)
		}
		f.asBefore()
	}
	l, f = damonSearch(t)
	l.cfg.For = time.Hour
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := find(ctx, l, []int{12, 13}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled: %v", err)
	}
	f.asBefore()
	// a kdamond that cannot be switched off is reported
	l, f = damonSearch(t)
	f.refuse = "0/state off"
	_, err := find(context.Background(), l, []int{12, 13})
	says(t, err, unix.ErrNotSupported, "could not be switched off again", "nr_kdamonds")
}

func TestDecisionDAMONRefuses(t *testing.T) {
	for _, c := range []struct {
		about string
		set   func(l *search, f *fakeDAMON)
		want  string
	}{
		{"no DAMON", func(l *search, f *fakeDAMON) { kerneltest.Remove(t, l.root, "/sys/kernel/mm/damon") }, "CONFIG_DAMON_SYSFS, since Linux 5.18"},
		{"no vaddr", func(_ *search, f *fakeDAMON) { f.ops = "paddr\n" }, "it has: paddr"},
		{"Linux 6.1", func(_ *search, f *fakeDAMON) { f.noTried = true }, "since Linux 6.2"},
		{"another process's", func(_ *search, f *fakeDAMON) { f.kdamonds("1"); f.file(kdamonds+"nr_kdamonds", "1") }, "another process has set it up, and it is left as it is: kdamond 0 is off"},
		{"ours, of a process that runs", func(_ *search, f *fakeDAMON) { f.leftover(13, "on") }, "kdamond 0 is that of process 13"},
		{"too many", func(l *search, _ *fakeDAMON) {
			for i := range 40 {
				kerneltest.Write(t, l.root, kerneltest.Files{fmt.Sprintf("/proc/%d/smaps", 100+i): ""})
			}
		}, "kdamond each"},
	} {
		l, f := damonSearch(t)
		c.set(l, f)
		pids := []int{12}
		for i := range 40 {
			if exists(l.proc(100+i, "smaps")) {
				pids = append(pids, 100+i)
			}
		}
		before := f.read(kdamonds + "nr_kdamonds")
		_, err := find(context.Background(), l, pids)
		says(t, err, unix.ErrNotSupported, c.want)
		if got := f.read(kdamonds + "nr_kdamonds"); got != before {
			t.Errorf("%s: nr_kdamonds was %s, is %s", c.about, before, got)
		}
	}
}

// leftover sets up what a killed run of process pid would leave.
func (f *fakeDAMON) leftover(pid int, state string) {
	f.kdamonds("1")
	f.file(kdamonds+"nr_kdamonds", "1")
	f.files(path(0, ""), "state", state, "contexts/0/schemes/0/access_pattern/sz/max", fmt.Sprint(markOf(pid)))
}

// What a killed run left is removed by the next.
func TestDecisionDAMONLeftover(t *testing.T) {
	for _, state := range []string{"on", "off"} {
		l, f := damonSearch(t)
		f.leftover(99999, state)
		if _, err := find(context.Background(), l, []int{12}); err != nil {
			t.Error(err)
		}
		f.asBefore()
	}
}

// CleanLeft removes only that, and writes nothing else.
func TestDecisionCleanLeft(t *testing.T) {
	for _, c := range []struct {
		about string
		set   func(l *search, f *fakeDAMON)
		n     int
		left  string
	}{
		{"on", func(_ *search, f *fakeDAMON) { f.leftover(99999, "on") }, 1, "0"},
		{"off", func(_ *search, f *fakeDAMON) { f.leftover(99999, "off") }, 1, "0"},
		{"nothing", func(*search, *fakeDAMON) {}, 0, "0"},
		{"of one that runs", func(_ *search, f *fakeDAMON) { f.leftover(13, "on") }, 0, "1"},
		{"another process's", func(_ *search, f *fakeDAMON) { f.kdamonds("1"); f.file(kdamonds+"nr_kdamonds", "1") }, 0, "1"},
		{"no DAMON", func(l *search, _ *fakeDAMON) { kerneltest.Remove(t, l.root, "/sys/kernel/mm/damon") }, 0, ""},
	} {
		l, f := damonSearch(t)
		c.set(l, f)
		n, err := l.cleanLeft()
		if n != c.n || err != nil || f.read(kdamonds+"nr_kdamonds") != c.left || n == 0 && len(f.log) > 0 {
			t.Errorf("%s: %d, %v, left %q, wrote %v", c.about, n, err, f.read(kdamonds+"nr_kdamonds"), f.log)
		}
	}
	if _, err := CleanLeft(unix.Live{}); !errors.Is(err, unix.ErrNotSupported) {
		t.Errorf("without a live kernel: %v", err)
	}
	l, f := damonSearch(t)
	f.leftover(99999, "on")
	f.refuse = "nr_kdamonds 0"
	if _, err := l.cleanLeft(); err == nil {
		t.Error("it could not be taken away, and no error reported it")
	}
}

// This host's DAMON, if it has one, is as it was, whatever is in the way.
func TestLiveDAMON(t *testing.T) {
	state := func() string {
		var all strings.Builder
		for _, file := range []string{"nr_kdamonds", "0/state", "0/pid", "0/contexts/0/operations", "0/contexts/0/monitoring_attrs/intervals/aggr_us"} {
			data, err := os.ReadFile(kdamonds + file)
			fmt.Fprintf(&all, "%s: %s %v\n", file, data, err)
		}
		return all.String()
	}
	before := state()
	p, err := Find(t.Context(), unix.NewLive(), []int{os.Getpid()}, Config{For: 400 * time.Millisecond, Sources: []string{DAMON}})
	if err != nil && !errors.Is(err, unix.ErrNotSupported) {
		t.Error(err)
	}
	if got := state(); got != before {
		t.Errorf("DAMON was\n%s, is\n%s", before, got)
	}
	t.Logf("%v; %+v", err, p.Heat())
}
