// SPDX-License-Identifier: Apache-2.0

package hotness

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"reflect"
	"testing"
	"time"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// sparse writes words at byte offsets of a file.
func sparse(t *testing.T, path string, words map[int64]uint64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for at, w := range words {
		if _, err := f.WriteAt([]byte(words64(w)), at); err != nil {
			t.Fatal(err)
		}
	}
}

// A process of four pages with frames 70, 71, 72 and 200. A huge page's tail and a page
// on no list never take a mark; frame 71 stays idle.
func TestDecisionIdle(t *testing.T) {
	l := fakeSearch(t, kerneltest.Files{
		"/proc/12/smaps":      smapsOf([3]int{24, 0, 0}),
		"/proc/kpageflags":    words64(make([]uint64, 256)...),
		bitmapFile:            words64(make([]uint64, 4)...),
		"/proc/12/clear_refs": "",
	}, Config{Sources: []string{Idle}, For: 200 * time.Millisecond})
	const present = 1 << 63
	entry := int64(base / 4096 * 8)
	sparse(t, l.root.Path("/proc/12/pagemap"), map[int64]uint64{entry: present | 70, entry + 8: present | 71, entry + 16: present | 72, entry + 24: 1 << 62, entry + 32: present | 200, entry + 40: present | 73})
	sparse(t, l.root.Path("/proc/kpageflags"), map[int64]uint64{8 * 70: flagLRU, 8 * 71: flagLRU, 8 * 72: flagLRU | flagTail, 8 * 200: flagLRU, 8 * 73: 0})
	was := make([]byte, 4*8)
	l.wait = func(ctx context.Context, d time.Duration) error { // the process runs: what it touches loses its mark
		var err1 error
		was, err1 = os.ReadFile(l.root.Path(bitmapFile))
		err2 := os.WriteFile(l.root.Path(bitmapFile), []byte(words64(0, 1<<(71-64), 0, 0)), 0o644)
		return errors.Join(err1, err2, unix.Sleep(ctx, d))
	}
	p, err := find(context.Background(), l, []int{fakePID})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := binary.NativeEndian.Uint64(was[8:]), uint64(0b1111<<6); got != want || binary.NativeEndian.Uint64(was[24:]) != 1<<(200-192) {
		t.Errorf("marked %x, want %x and frame 200", was, want)
	}
	want := []span{{base, base + 0x1000}, {base + 0x4000, base + 0x5000}}
	if !reflect.DeepEqual(p.spans[fakePID], want) {
		t.Errorf("hot: %x, want %x", p.spans[fakePID], want)
	}
	if h := p.Heat(); h.Source != "idle page tracking" || h.Unit != "page" || h.Bytes != 8192 || h.How != unit.HowMeasured || h.For < 200*time.Millisecond {
		t.Errorf("%+v", h)
	}
}

func TestDecisionIdleRefuses(t *testing.T) {
	files := kerneltest.Files{"/proc/12/smaps": smapsOf([3]int{4, 0, 0})}
	_, err := find(context.Background(), fakeSearch(t, files, Config{Sources: []string{Idle}}), []int{fakePID})
	says(t, err, unix.ErrNotSupported, "idle page tracking: the kernel has no /sys/kernel/mm/page_idle/bitmap", "CONFIG_IDLE_PAGE_TRACKING")
	l := fakeSearch(t, files.With(kerneltest.Files{bitmapFile: words64(0)}), Config{Sources: []string{Idle}})
	sparse(t, l.root.Path("/proc/12/pagemap"), map[int64]uint64{base / 4096 * 8: 1 << 63})
	_, err = find(context.Background(), l, []int{fakePID})
	says(t, err, unix.ErrNotPermitted, "CAP_SYS_ADMIN")
}

func words(frames ...uint64) []word {
	s := frameSet{}
	for _, f := range frames {
		s.add(f)
	}
	return s.words()
}

// Frames take their bits, and their words; not 8 bytes each.
func BenchmarkFrameSet(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s := frameSet{}
		for f := range uint64(1 << 24) { // 64 GiB
			s.add(f)
		}
		if len(s.words()) != 1<<24/64 {
			b.Fatal("not all")
		}
	}
}

// fakeBitmap behaves as mm/page_idle.c: whole words only, up to max_pfn.
type fakeBitmap struct {
	maxPFN int64
	words  []byte
}

func (f fakeBitmap) Close() error { return nil }

func (f fakeBitmap) whole(buf []byte, at int64) int {
	return int(min(int64(len(buf)), f.maxPFN/64*8-at))
}

func (f fakeBitmap) ReadAt(buf []byte, at int64) (int, error) {
	if n := copy(buf, f.words[at:at+int64(f.whole(buf, at))]); n < len(buf) {
		return n, io.EOF
	}
	return len(buf), nil
}

func (f fakeBitmap) WriteAt(buf []byte, at int64) (int, error) {
	n := f.whole(buf, at)
	copy(f.words[at:], buf)
	if n < len(buf) {
		return n, io.ErrUnexpectedEOF // what os.File says of a write of 0 bytes
	}
	return n, nil
}

// The last word of a machine whose number of frames is not a multiple of 64 is unknown,
// and no reason to find nothing.
func TestDecisionIdleLastWord(t *testing.T) {
	for _, c := range []struct {
		marks, want []word
	}{
		{[]word{{2, 5}, {3, 1}}, []word{{2, 5}, {3, 0}}}, // in one call with others
		{[]word{{0, 1}, {3, 1}}, []word{{0, 1}, {3, 0}}}, // in a call of its own
		{[]word{{0, 1}, {2, 1}}, []word{{0, 1}, {2, 1}}},
	} {
		f := fakeBitmap{maxPFN: 3*64 + 10, words: make([]byte, 4*8)}
		i := idle{search: &search{}, bitmap: f, marks: c.marks}
		if err := i.mark(context.Background()); err != nil {
			t.Errorf("mark %v: %v", c.marks, err)
		}
		clear(f.words) // all were accessed
		if err := i.compare(context.Background()); err != nil || !reflect.DeepEqual(i.marks, c.want) {
			t.Errorf("%v, %v, want %v", err, i.marks, c.want)
		}
		i.marks = []word{{2, 5}, {3, 1}} // and when it is read only
		if err := i.compare(context.Background()); err != nil || i.marks[1].bits != 0 || i.marks[0].bits != 5 {
			t.Errorf("read: %v, %v", err, i.marks)
		}
	}
	i := idle{search: &search{}, bitmap: fakeBitmap{maxPFN: 64, words: make([]byte, 4*8)}, marks: []word{{0, 1}, {1, 1}, {2, 1}}}
	if err := i.compare(context.Background()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("two words are missing: %v", err)
	}
}

func TestDecodeWords(t *testing.T) {
	if got, want := words(130, 0, 63, 64, 0, 64*chunkWords+1), []word{{0, 1<<63 | 1}, {1, 1}, {2, 4}, {chunkWords, 2}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// What goes into a bitmap comes out of it, and nothing else.
func FuzzDecodeWords(f *testing.F) {
	f.Add([]byte(words64(1, 2, 64, 1<<40)))
	f.Add([]byte(words64(flagLRU, flagLRU|flagTail)))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := map[uint64]bool{}
		var frames []uint64
		for i := range len(data) / 8 {
			w := binary.NativeEndian.Uint64(data[8*i:])
			in[w] = true
			frames = append(frames, w, w)
		}
		marks := words(frames...)
		bits := 0
		for _, m := range marks {
			for b := m.bits; b != 0; b &= b - 1 {
				bits++
			}
		}
		if bits != len(in) {
			t.Errorf("%d bits of %d frames", bits, len(in))
		}
		for w := range in {
			if !accessed(marks, w) || !in[w+1] && accessed(marks, w+1) {
				t.Errorf("frame %d of %v", w, marks)
			}
			if frame, ok := presentFrame(w); ok && (w>>63 == 0 || frame == 0 || frame >= 1<<55) {
				t.Errorf("entry %x: frame %x", w, frame)
			}
		}
		if n := min(64, len(data)/8); n < 64 && markables(data)>>n != 0 {
			t.Errorf("flags of %d frames: %x", n, markables(data))
		}
	})
}

func TestDecisionTooSparse(t *testing.T) {
	a := mapped(0, 1<<40, 0)
	if a.RSS = 1 << 20; !tooSparse(a) {
		t.Error("1 MiB in 1 TiB is not too sparse")
	}
	if a.RSS = 1 << 35; tooSparse(a) || tooSparse(mapped(0, 1<<30, 0)) {
		t.Error("32 GiB in 1 TiB, or 1 GiB, is too sparse")
	}
}
