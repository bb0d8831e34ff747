// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// From Linux 6.18, the second mapping with invented figures.
const smapsAreas = `55fe2928c000-55fe2928e000 r--p 00000000 fe:00 247278                     /usr/bin/head
Size:                  8 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                   8 kB
Pss:                   8 kB
Pss_Dirty:             0 kB
Shared_Clean:          0 kB
Shared_Dirty:          0 kB
Private_Clean:         8 kB
Private_Dirty:         0 kB
Referenced:            4 kB
Anonymous:             0 kB
KSM:                   0 kB
LazyFree:              0 kB
AnonHugePages:         0 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
Swap:                  0 kB
SwapPss:               0 kB
Locked:                0 kB
THPeligible:           0
VmFlags: rd mr mw me 
7f1c40000000-7f1c40600000 rw-s 00002000 00:01 7                          /SYSV00000000 (deleted)
Size:               6144 kB
KernelPageSize:     2048 kB
Rss:                4096 kB
Referenced:            0 kB
AnonHugePages:      2048 kB
ShmemPmdMapped:     2048 kB
Shared_Hugetlb:     4096 kB
Private_Hugetlb:    2048 kB
ProtectionKey:         0
VmFlags: rd wr sh mr mw me ms ht sd 
`

func TestDecodeSmapsAreas(t *testing.T) {
	got, err := parseSmaps([]byte(smapsAreas))
	want := []SmapsArea{
		{Area: Area{Range: Range{0x55fe2928c000, 0x55fe2928e000}, Access: "r--p", Dev: 0xfe00, Inode: 247278, Path: "/usr/bin/head"}, PageSize: 4 * unit.KiB, RSS: 8 * unit.KiB, Referenced: 4 * unit.KiB},
		{Area: Area{Range: Range{0x7f1c40000000, 0x7f1c40600000}, Access: "rw-s", Offset: 0x2000, Dev: 1, Inode: 7, Path: "/SYSV00000000 (deleted)"},
			PageSize: 2 * unit.MiB, RSS: 4 * unit.MiB, Huge: 4 * unit.MiB, AnonHuge: 2 * unit.MiB, HugeTLB: 6 * unit.MiB},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := parseSmaps(nil); err != nil || got != nil {
		t.Errorf("of a kernel thread: %v, %v", got, err)
	}
	head := "1000-2000 rw-p 00000000 00:00 0 \n"
	for text, want := range map[string]string{
		"Rss: 4 kB\n": "line 1", head: "line 2", head + "Rss: 4 kB\nReferenced: 4 kB\n" + head: "line 4",
		head + "Rss: 4\n": `"Rss: 4"`, head + "Rss: 4 kB\nReferenced: x kB\n": "line 3", head + "KernelPageSize: 5 kB\n": "line 2",
		"1000-2000 rw-p\n": "line 1", "2000-1000 rw-p 00000000 00:00 0 \n": "line 1",
	} {
		if got, err := parseSmaps([]byte(text)); !errors.Is(err, unix.ErrMalformed) || got != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// This kernel's own file can be read, and agrees with maps.
func TestParitySmaps(t *testing.T) {
	data, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skipf("no smaps: %v", err)
	}
	got, err := parseSmaps(data)
	rss := unit.Bytes(0)
	for _, a := range got {
		if rss += a.RSS; a.Referenced > a.RSS || int64(a.RSS) > int64(a.End-a.Start) {
			t.Errorf("%+v", a)
		}
	}
	if err != nil || rss < unit.MiB {
		t.Errorf("%d mappings, %v resident, %v", len(got), rss, err)
	}
}
