// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func open(t *testing.T, dir string, budget int64) *Spool {
	t.Helper()
	s, err := OpenSpool(dir, budget)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func content(i int) []byte { return fmt.Appendf(nil, "batch %d: %0*d", i, i%40, i) }

func fill(t *testing.T, s *Spool, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		if err := s.Add(content(i)); err != nil {
			t.Fatal(err)
		}
	}
}

// drain returns what is in a spool, oldest first, and settles it.
func drain(t *testing.T, s *Spool) (all []string) {
	t.Helper()
	for {
		part, err := s.Next(3, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(part) == 0 {
			return all
		}
		for _, e := range part {
			all = append(all, string(e.Packed))
		}
		s.Done(part[len(part)-1].Seq)
	}
}

func want(from, to int) (all []string) {
	for i := from; i <= to; i++ {
		all = append(all, string(content(i)))
	}
	return all
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func segmentFiles(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"+extension))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSpoolKeepsOrder(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	fill(t, s, 1, 10)
	some, _ := s.Next(4, 1<<20)
	s.Done(some[3].Seq)
	if got := s.Status().Waiting; got != 6 {
		t.Errorf("%d wait, want 6", got)
	}
	fill(t, s, 11, 12)
	same(t, "rest", drain(t, s), want(5, 12))
	if st := s.Status(); st.Waiting != 0 || st.Bytes != 0 || len(st.Dropped) != 0 {
		t.Errorf("not empty: %+v", st)
	}
	fill(t, s, 13, 13) // after the segment was emptied
	same(t, "next", drain(t, open(t, dir, 1<<20)), want(13, 13))
}

// A crash leaves any prefix of the file: what is whole in it is there, byte for byte, and
// what comes after the restart is behind it.
func TestSpoolAfterACrashAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	var ends []int
	for i := 1; i <= 6; i++ {
		fill(t, s, i, i)
		ends = append(ends, int(s.Status().Bytes))
	}
	data, err := os.ReadFile(segmentFiles(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, tail := range []string{"", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "garbage that is longer than a head"} {
		for n := 0; n <= len(data); n++ {
			whole := 0
			for whole < len(ends) && ends[whole] <= n {
				whole++
			}
			crashed := t.TempDir()
			if err := os.WriteFile(filepath.Join(crashed, filepath.Base(segmentFiles(t, dir)[0])), append(data[:n:n], tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			again := open(t, crashed, 1<<20)
			if err := again.Add([]byte("after")); err != nil {
				t.Fatal(err)
			}
			same(t, fmt.Sprintf("prefix of %d bytes and %q", n, tail), drain(t, again), append(want(1, whole), "after"))
		}
	}
}

func TestSpoolDropsTheOldestOverBudget(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 64<<10)
	big := make([]byte, 10<<10)
	for i := range 40 {
		big[0] = byte(i)
		if err := s.Add(big); err != nil {
			t.Fatal(err)
		}
		if st := s.Status(); st.Bytes > 64<<10 || st.Waiting+st.Dropped[DropBudget] != uint64(i+1) {
			t.Fatalf("after %d: %+v", i+1, st)
		}
	}
	got := drain(t, s)
	if len(got) == 0 || got[len(got)-1][0] != 39 {
		t.Errorf("the newest is not there: %d left", len(got))
	}
}

func TestSpoolFindsDamage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	fill(t, s, 1, 5)
	file := segmentFiles(t, dir)[0]
	data, _ := os.ReadFile(file)
	data[len(data)/2] ^= 1
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	got := drain(t, s)
	st := s.Status()
	if len(got)+int(st.Dropped[DropDamaged]) != 5 || st.Dropped[DropDamaged] == 0 || st.Waiting != 0 {
		t.Errorf("read %q, %+v", got, st)
	}
	fill(t, s, 6, 6)
	same(t, "after damage", drain(t, s), want(6, 6))
}

// full fails as a full disk does: after a part was written.
type full struct {
	file
	room *int
}

func (f full) Write(b []byte) (int, error) {
	if len(b) > *f.room {
		n, _ := f.file.Write(b[:*f.room])
		return n, syscall.ENOSPC
	}
	*f.room -= len(b)
	return f.file.Write(b)
}

// On a full disk batches wait in memory, may be sent, and are written when there is room.
func TestSpoolOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	room := 100
	s.create = func(path string) (file, error) {
		f, err := createFile(path)
		return full{f, &room}, err
	}
	failed := 0
	for i := 1; i <= 8; i++ {
		if err := s.Add(content(i)); errors.Is(err, syscall.ENOSPC) {
			failed++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if st := s.Status(); failed == 0 || st.Held == 0 || st.Failing == "" || st.Waiting != 8 {
		t.Fatalf("%d failed, %+v", failed, st)
	}
	first, _ := s.Next(100, 1<<20)
	if len(first) != 8 {
		t.Errorf("%d of 8 can be sent", len(first))
	}
	s.Done(first[1].Seq)
	room = 1 << 20
	fill(t, s, 9, 9)
	if st := s.Status(); st.Held != 0 || st.Failing != "" {
		t.Errorf("not written: %+v", st)
	}
	again, _ := open(t, dir, 1<<20).Next(100, 1<<20)
	var after []string
	for _, e := range again {
		after = append(after, string(e.Packed))
	}
	same(t, "after a restart", after[max(0, len(after)-7):], want(3, 9))
	same(t, "from this one", drain(t, s), want(3, 9))
}

// What waits in memory has a bound, and what goes is counted.
func TestSpoolHoldsABoundedAmount(t *testing.T) {
	s := open(t, t.TempDir(), 64<<20)
	s.create = func(string) (file, error) { return nil, syscall.ENOSPC }
	big := make([]byte, 200<<10)
	for i := range 20 {
		_ = s.Add(big)
		st := s.Status()
		if st.Waiting+st.Dropped[DropDisk] != uint64(i+1) || st.Held*len(big) > mostHeld {
			t.Fatalf("after %d: %+v", i+1, st)
		}
	}
}

func FuzzSpool(f *testing.F) {
	f.Add(encode(Entry{1, []byte("a")}))
	f.Add(append(encode(Entry{1, []byte("a")}), encode(Entry{2, nil})...))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "1"+extension), data, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, 1<<20)
		before := int(s.Status().Waiting)
		if got := len(drain(t, s)); got != before {
			t.Errorf("%d of %d entries were read", got, before)
		}
	})
}
