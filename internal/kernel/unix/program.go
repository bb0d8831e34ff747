// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"fmt"
	"strconv"
	"strings"

	sys "golang.org/x/sys/unix"
)

// ForgetProgram unmaps the pages of this program's own file: what starting it has touched,
// and what the kernel maps around each page that is (fault_around_bytes, and large folios
// whole). They stay in the page cache; what is used comes back with a fault each. Pages
// that were written to are not touched.
func ForgetProgram() error {
	const file = "/proc/self/maps"
	var buf Buffer
	data, err := buf.ReadFile(file)
	if err != nil {
		return Explain("read", file, "", err)
	}
	for line := range strings.Lines(string(data)) {
		start, end, ok := programRange(line)
		if !ok {
			continue
		}
		if _, _, e := sys.Syscall(sys.SYS_MADVISE, uintptr(start), uintptr(end-start), sys.MADV_DONTNEED); e != 0 {
			return fmt.Errorf("forget %s: %w", strings.TrimSpace(line), e)
		}
	}
	return nil
}

// programRange reads a line of maps, if it is of code or constants of a file:
//
//	00400000-0114d000 r-xp 00000000 fe:00 1234  /usr/bin/homenode
//
// What may be written to, is shared, or is no file's is not: its content would be lost.
func programRange(line string) (start, end uint64, ok bool) {
	f := strings.Fields(line)
	if len(f) < 6 || !strings.HasPrefix(f[1], "r-") || !strings.HasSuffix(f[1], "p") || !strings.HasPrefix(f[5], "/") {
		return 0, 0, false
	}
	a, b, _ := strings.Cut(f[0], "-")
	start, err1 := strconv.ParseUint(a, 16, 64)
	end, err2 := strconv.ParseUint(b, 16, 64)
	return start, end, err1 == nil && err2 == nil && start < end
}
