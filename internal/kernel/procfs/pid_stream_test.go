// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"homenode/internal/kernel/unix"
)

// Read by line, each file gives the same as read whole.
func TestStreamsAreTheParsers(t *testing.T) {
	var buf unix.Buffer
	for _, file := range []string{"maps", "numa_maps", "smaps"} {
		path := "/proc/self/" + file
		if _, err := os.Stat(path); err != nil {
			t.Logf("this kernel has no %s", path)
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), file)
		if err := os.WriteFile(copied, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var want, got any
		var err1, err2 error
		switch file {
		case "maps":
			want, err1 = ParseAreas(data)
			got, err2 = ReadAreas(&buf, copied, MapsBudget())
		case "numa_maps":
			want, err1 = parseNumaMaps(data)
			got, err2 = ReadNumaMaps(&buf, copied, MapsBudget())
		case "smaps":
			want, err1 = parseSmaps(data)
			got, err2 = ReadSmaps(&buf, copied, MapsBudget())
		}
		if err1 != nil || err2 != nil || !reflect.DeepEqual(want, got) || reflect.ValueOf(got).Len() == 0 {
			t.Errorf("%s: %v, %v: whole and by line differ", file, err1, err2)
		}
	}
}

// mappingsOf writes a maps of n mappings, each of the file that name returns.
func mappingsOf(t *testing.T, n int, name func(int) string) string {
	t.Helper()
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "%x-%x r--p 00000000 fe:00 247278 %s\n", 0x7f0000000000+i*8192, 0x7f0000001000+i*8192, name(i))
	}
	path := filepath.Join(t.TempDir(), "maps")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// One file that is mapped many times under a long path takes the memory of one path;
// the same number of files with long paths is refused.
func TestManyMappingsTakeLittleMemory(t *testing.T) {
	const n = 8000
	long := "/" + strings.Repeat("directory/", 400)
	same := mappingsOf(t, n, func(int) string { return long })
	var before, after runtime.MemStats
	var buf unix.Buffer
	runtime.GC()
	runtime.ReadMemStats(&before)
	areas, err := ReadAreas(&buf, same, MapsBudget())
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); err != nil || len(areas) != n || areas[n-1].Path != long || held > 4<<20 {
		t.Errorf("%d mappings, %v, %d bytes held", len(areas), err, held)
	}
	other := mappingsOf(t, n, func(i int) string { return fmt.Sprint(long, i) })
	if areas, err := ReadAreas(&buf, other, MapsBudget()); !errors.Is(err, unix.ErrTooLarge) || areas != nil {
		t.Errorf("%d files with long paths: %v", n, err)
	}
	seen := 0
	if mappings, err := ReadMapped(&buf, other, MapsBudget(), func(uint64, uint64, bool) { seen++ }); err != nil || mappings != n || seen != n {
		t.Errorf("%d of %d, %v", seen, mappings, err)
	}
}
