// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/quick"

	"homenode/internal/machine/machinetest"
)

// killed are the worlds that the script leaves when it is killed at each point. every is
// the number of points in one step.
func killed(t *testing.T, every int) (all []*world) {
	t.Helper()
	seen := map[string]bool{}
	for stop := 1; ; stop += every {
		w := newWorld()
		w.stop = stop
		ended := !until(func() { run(t, w) })
		if w.stop = 0; !seen[fmt.Sprint(w.files)+string(w.log)] {
			seen[fmt.Sprint(w.files)+string(w.log)] = true
			all = append(all, w)
		}
		if ended {
			return all
		}
	}
}

// checkDamage fails unless all is as before, or the damage is reported: now and by the next
// look.
func checkDamage(t *testing.T, w *world, want map[Setting]string, what string) (left bool) {
	t.Helper()
	for range 2 {
		j, err := open(w, boot)
		if err != nil {
			return false // refused with a sentence, and nothing is touched
		}
		if _, err := j.Restore(ctx, w); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !maps.Equal(w.files, want) {
			left = true
			if !errors.Is(j.Damage(), ErrDamaged) {
				t.Fatalf("%s: left %v, and it is not reported", what, w.files)
			}
		}
	}
	return left
}

// For any changed byte of a journal, and wherever homenode was killed: all is put back,
// or the journal reports that something may be left, until the user confirms having
// looked.
func TestEveryFlip(t *testing.T) {
	want, tried, left := newWorld().files, 0, 0
	for n, w := range killed(t, 1) {
		for at := range w.log {
			if testing.Short() && at < len(w.log)-20 && (at+n)%11 != 0 {
				continue
			}
			to := []byte{w.log[at] ^ 1, w.log[at] ^ 0x20, '\n', 0}[(n+at)%4]
			if to == w.log[at] {
				continue
			}
			flipped := w.clone()
			flipped.log[at] = to
			if tried++; checkDamage(t, flipped, want, fmt.Sprintf("state %d, byte %d made %q", n, at, to)) {
				left++
			}
		}
	}
	if t.Logf("%d flips, %d left something and said so", tried, left); tried < 2000 || left == 0 {
		t.Errorf("%d flips, %d left something: nothing was tried", tried, left)
	}
}

// Zeros, an empty log, and lines that are missing, doubled or in another order.
func TestOtherDamage(t *testing.T) {
	for n, w := range killed(t, 7) {
		lines := bytes.SplitAfter(bytes.TrimSuffix(w.log, []byte("\n")), []byte("\n"))
		if len(lines) < 4 {
			continue
		}
		join := func(all ...[]byte) []byte { return append(bytes.Join(all, nil), '\n') }
		for what, log := range map[string][]byte{
			"zeros": make([]byte, len(w.log)), "half of it zeros": append(bytes.Clone(w.log[:len(w.log)/2]), make([]byte, len(w.log)/2)...),
			"a line less": join(append(append([][]byte{}, lines[:2]...), lines[3:]...)...), "no first line": join(lines[1:]...),
			"other order": join(append([][]byte{lines[0], lines[2], lines[1]}, lines[3:]...)...), "twice": join(append([][]byte{lines[0], lines[1]}, lines[1:]...)...),
			"empty": {},
		} {
			damaged := w.clone()
			if damaged.log = log; what == "empty" {
				if p := parse(log, boot); len(p.records) > 0 {
					t.Fatal(p)
				}
				continue // TestEmptyLog: no difference in this world
			}
			checkDamage(t, damaged, newWorld().files, fmt.Sprintf("state %d, %s", n, what))
			if p := parse(log, boot); len(p.damage) == 0 {
				t.Errorf("state %d, %s: not reported", n, what)
			}
		}
	}
}

// A log that was emptied is damage, and what is kept aside stays until it is forgotten.
func TestEmptyLog(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir)
	if err != nil {
		t.Skipf("no journal on this host: %v", err)
	}
	if err := errors.Join(j.Damage(), j.Close(), os.Truncate(filepath.Join(dir, logName), 0)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if j, err = Open(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Peek(dir, j.boot); !errors.Is(err, ErrDamaged) || !errors.Is(j.Damage(), ErrDamaged) || !strings.Contains(err.Error(), "--forget-damage") {
			t.Errorf("%v, %v", err, j.Damage())
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if j, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.ForgetDamage(), j.Damage(), j.Close()); err != nil {
		t.Error(err)
	}
	if _, err := Peek(dir, j.boot); err != nil {
		t.Error(err)
	}
}

// Names and values are bytes: what is written is what is read.
func TestRecordsKeepEveryByte(t *testing.T) {
	same := func(name, value string) bool {
		r := record{Seq: 1, Kind: kindIntent, Workload: name, Setting: Setting{name, "f"}, Old: value, New: value, Why: name}
		line, err := r.line(boot)
		if err != nil || bytes.IndexByte(line, '\n') != len(line)-1 {
			return false
		}
		got, ok := parseLine(line[:len(line)-1], boot)
		return ok && got == r
	}
	for b := range 256 {
		for _, name := range []string{string([]byte{byte(b)}), "/demo/" + string([]byte{byte(b)}), "/x\xff" + string([]byte{byte(b)}) + "\u2028<&>"} {
			if !same(name, "0-3") || !same("/demo", name) {
				t.Errorf("%q is not itself", name)
			}
		}
	}
	bytesToo := func(name, value []byte) bool { return same(string(name), string(value)) }
	if err := quick.Check(bytesToo, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}

// A cgroup of any name is put back after a kill.
func TestAnyNameIsPutBack(t *testing.T) {
	for b := 1; b < 256; b++ {
		if b == '/' {
			continue
		}
		w := newWorld()
		id := "/demo/" + string([]byte{'a', byte(b)})
		s := Setting{id, "cpuset.cpus"}
		w.ids[id], w.files[s] = 9, "0-7"
		w.files[subtreeRoot], w.files[subtreeDemo] = "+", "+"
		if o := mustOpen(t, w).Wrap(w).Apply(ctx, cpus(id, 1)); o.Status != "done" || w.files[s] != "1" {
			t.Fatalf("%q: %+v", id, o)
		}
		if got, err := mustOpen(t, w).Restore(ctx, w); err != nil || len(got) != 1 || w.files[s] != "0-7" { // it was killed
			t.Errorf("%q: %v, %v, %q", id, got, err, w.files[s])
		}
	}
}

// Several bytes are changed, or a part is zeros, or comes from another file.
func TestRandomDamage(t *testing.T) {
	r, tried, left := rand.New(rand.NewPCG(20, 1)), 0, 0
	worlds, most := killed(t, 1), machinetest.Seeds(3000, 50000)
	for tried < most {
		w := worlds[r.IntN(len(worlds))].clone()
		if len(w.log) == 0 {
			continue
		}
		switch at := r.IntN(len(w.log)); r.IntN(3) {
		case 0:
			for range 1 + r.IntN(4) {
				w.log[r.IntN(len(w.log))] = byte(r.IntN(256))
			}
		case 1:
			clear(w.log[at:min(len(w.log), at+r.IntN(200))])
		default:
			from := r.IntN(len(w.log))
			copy(w.log[at:], bytes.Clone(w.log[from:min(len(w.log), from+r.IntN(100))]))
		}
		if tried++; checkDamage(t, w, newWorld().files, fmt.Sprintf("try %d: %q", tried, w.log)) {
			left++
		}
	}
	if t.Logf("%d damaged, %d left something and said so", tried, left); left == 0 {
		t.Error("nothing was left: nothing was tried")
	}
}

// TestManyFlips tries as many crash points × byte flips as HOMENODE_FLIPS says, evenly over
// all there are: `make test-full` tries a million. HOMENODE_KILL_SEED says which is the first,
// so that runs of other days try others.
func TestManyFlips(t *testing.T) {
	most, err := strconv.Atoi(os.Getenv("HOMENODE_FLIPS"))
	if err != nil || most <= 0 {
		t.Skip("HOMENODE_FLIPS is not a number of flips: 'make test-full' tries 1000000")
	}
	want, worlds, all := newWorld().files, killed(t, 1), 0
	for _, w := range worlds {
		all += 255 * len(w.log)
	}
	seed, _ := strconv.ParseUint(os.Getenv("HOMENODE_KILL_SEED"), 10, 64) // 0 without one
	step, tried, left := max(1, float64(all)/float64(most)), 0, 0
	first := step * rand.New(rand.NewPCG(seed, 22)).Float64()
	for n, at := 0, first; tried < most && n < len(worlds); {
		flips := 255 * len(worlds[n].log)
		if int(at) >= flips {
			n, at = n+1, at-float64(flips)
			continue
		}
		w := worlds[n].clone()
		w.log[int(at)/255] ^= byte(1 + int(at)%255)
		if tried++; checkDamage(t, w, want, fmt.Sprintf("state %d, byte %d ^ %#x", n, int(at)/255, 1+int(at)%255)) {
			left++
		}
		at += step
	}
	t.Logf("%d of %d flips at %d crash points, the first of seed %d; %d left something and said so", tried, all, len(worlds), seed, left)
}
