// SPDX-License-Identifier: Apache-2.0

package hotness

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
)

const (
	fakePID = 12
	base    = 0x7f0000000000
)

// smapsOf are the mappings of a fake process: their sizes in KiB, with gaps between them,
// and how much of each is referenced, and huge.
func smapsOf(areas ...[3]int) string {
	var b strings.Builder
	at := uint64(base)
	for _, a := range areas {
		end := at + uint64(a[0])<<10
		fmt.Fprintf(&b, "%x-%x rw-p 00000000 00:00 0 \nKernelPageSize: 4 kB\nRss: %d kB\nReferenced: %d kB\nAnonHugePages: %d kB\nVmFlags: rd wr\n", at, end, a[0], a[1], a[2])
		at = end + 1<<30
	}
	return b.String()
}

// second is where the second of two mappings begins.
func second(first int) uint64 { return base + uint64(first)<<10 + 1<<30 }

func fakeSearch(t *testing.T, files kerneltest.Files, cfg Config) *search {
	t.Helper()
	if cfg.For == 0 {
		cfg.For = 10 * time.Millisecond
	}
	l := newSearch(kerneltest.Tree(t, files), cfg)
	l.write = func(path, value string) error {
		t.Errorf("%s was written to %s", value, path)
		return nil
	}
	return l
}

func words64(words ...uint64) string {
	var b []byte
	for _, w := range words {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	return string(b)
}

func says(t *testing.T, err error, kind error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want %q in it", err, text)
		}
	}
	if !isKind(err, kind) {
		t.Errorf("error %v is not %v", err, kind)
	}
}

func isKind(err, kind error) bool { return unix.Classify(err) == kind }
