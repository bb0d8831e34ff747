// SPDX-License-Identifier: Apache-2.0

package hotness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

func TestDecisionReferenced(t *testing.T) {
	l := fakeSearch(t, kerneltest.Files{"/proc/12/smaps": smapsOf([3]int{64, 32, 0}, [3]int{64, 28, 0}), "/proc/12/clear_refs": ""}, Config{})
	var wrote string
	l.write = func(path, value string) error {
		wrote = path + " " + value
		return nil
	}
	p, err := find(context.Background(), l, []int{fakePID, 13})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(wrote, "/proc/12/clear_refs 1") {
		t.Errorf("wrote %q", wrote)
	}
	if !p.Hot(fakePID, base) || p.Hot(fakePID, second(64)) || p.Hot(13, base) {
		t.Errorf("%x", p.spans)
	}
	h := p.Heat()
	if h.Bytes != 64*unit.KiB || h.Unit != "mapping" || len(h.Others) != 3 || !strings.HasPrefix(h.Others[0], "PMU samples: ") ||
		!strings.HasPrefix(h.Others[1], "DAMON: ") || !strings.HasPrefix(h.Others[2], "idle page tracking: ") {
		t.Errorf("%+v", h)
	}
	if n := p.Notes(); len(n) != 2 || !strings.Contains(n[0], "reclaim") {
		t.Errorf("notes %q", n)
	}
}

func TestDecisionFindRefuses(t *testing.T) {
	files := kerneltest.Files{"/proc/12/smaps": smapsOf([3]int{64, 32, 0})}
	_, err := find(context.Background(), fakeSearch(t, files, Config{}), []int{fakePID})
	says(t, err, unix.ErrNotSupported, "PMU samples: ", "DAMON: ", "idle page tracking: ", "referenced bits (clear_refs): ")
	_, err = find(context.Background(), fakeSearch(t, files, Config{}), []int{13, 14})
	says(t, err, unix.ErrGone, "none of the 2 processes")
	for want, cfg := range map[string]Config{
		`unknown source "x"`: {For: 1, Sources: []string{"x"}}, "share 2 ": {For: 1, Share: 2}, "looking for -1ns": {For: -1},
	} {
		if _, err := find(context.Background(), fakeSearch(t, files, cfg), []int{fakePID}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Find(context.Background(), unix.Live{}, []int{os.Getpid()}, Config{For: 1}); !errors.Is(err, unix.ErrNotSupported) {
		t.Errorf("not the running kernel: %v", err)
	}
	// a missing privilege is reported, also if the last source lacks it
	l := fakeSearch(t, files.With(kerneltest.Files{"/proc/12/clear_refs": ""}), Config{Sources: []string{Referenced}})
	l.write = func(string, string) error { return &os.PathError{Err: sys.EACCES} }
	_, err = find(context.Background(), l, []int{fakePID})
	says(t, err, unix.ErrNotPermitted, "CAP_DAC_OVERRIDE")
}

const (
	childEnv   = "HOMENODE_TEST_TOUCH"
	childBytes = 8 << 20
)

// TestTouchChild is the child process of the tests below, not a test. It fills two
// mappings and then touches one of them, over and over.
func TestTouchChild(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		t.Skip("only as a child of other tests")
	}
	var parts [2][]byte
	for i := range parts {
		mem, err := sys.Mmap(-1, 0, childBytes+2*4096, sys.PROT_NONE, sys.MAP_PRIVATE|sys.MAP_ANONYMOUS)
		if err != nil {
			t.Fatal(err)
		}
		parts[i] = mem[4096 : 4096+childBytes] // a gap keeps them apart: similar adjacent mappings merge
		if err := sys.Mprotect(parts[i], sys.PROT_READ|sys.PROT_WRITE); err != nil {
			t.Fatal(err)
		}
		for at := 0; at < childBytes; at += 4096 {
			parts[i][at] = 1
		}
	}
	fmt.Printf("child %p %p\n", &parts[0][0], &parts[1][0])
	for {
		for at := 0; at < childBytes; at += 4096 {
			parts[0][at]++
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// startChild returns the child's pid, the mapping that it touches, and the one that it
// does not.
func startChild(t *testing.T) (pid int, warm, cold uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestTouchChild$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for s := bufio.NewScanner(out); s.Scan(); {
		if n, _ := fmt.Sscanf(s.Text(), "child 0x%x 0x%x", &warm, &cold); n == 2 {
			return cmd.Process.Pid, warm, cold
		}
	}
	t.Fatal("the child said nothing")
	return 0, 0, 0
}

// On the real kernel, a used mapping and an unused one are distinguished.
func TestLiveReferenced(t *testing.T) {
	pid, warm, cold := startChild(t)
	p, err := Find(t.Context(), unix.NewLive(), []int{pid, 1 << 30}, Config{For: 300 * time.Millisecond, Sources: []string{Referenced}})
	if errors.Is(err, unix.ErrNotPermitted) {
		t.Skipf("not permitted here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for at := uint64(0); at < childBytes; at += 4096 {
		if !p.Hot(pid, warm+at) || p.Hot(pid, cold+at) {
			t.Fatalf("page %d: touched %v, left alone %v", at/4096, p.Hot(pid, warm+at), p.Hot(pid, cold+at))
		}
	}
	if h := p.Heat(); h.Bytes < childBytes || h.Source != "referenced bits (clear_refs)" || h.For < 300*time.Millisecond {
		t.Errorf("%+v", h)
	}
	t.Logf("%+v %q", p.Heat(), p.Notes())
}

// Any source of this host works, and reports itself; a process that ends does not
// disturb.
func TestLiveFind(t *testing.T) {
	pid, warm, _ := startChild(t)
	ends := exec.Command("sleep", "0.1")
	if err := ends.Start(); err != nil {
		t.Skip(err)
	}
	go ends.Wait()
	p, err := Find(t.Context(), unix.NewLive(), []int{pid, ends.Process.Pid}, Config{For: 500 * time.Millisecond})
	if errors.Is(err, unix.ErrNotPermitted) {
		t.Skipf("not permitted here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if h := p.Heat(); h.Source == "" || h.Bytes == 0 || !p.Hot(pid, warm) {
		t.Errorf("%+v, first page hot: %v", h, p.Hot(pid, warm))
	}
	t.Logf("%+v %q", p.Heat(), p.Notes())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Find(ctx, unix.NewLive(), []int{pid}, Config{For: time.Hour}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
