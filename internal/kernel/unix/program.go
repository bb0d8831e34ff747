// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	sys "golang.org/x/sys/unix"
)

// ForgetProgram unmaps the pages of this program's own file: those touched at the start,
// and those that the kernel maps around each touched page (fault_around_bytes, and large
// folios whole). They stay in the page cache; a page that is used comes back with a
// fault.
func ForgetProgram() error {
	const file = "/proc/self/smaps"
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("forget what is not used of the program: %w", err)
	}
	var buf Buffer
	data, err := buf.ReadFile(file)
	if err != nil {
		return Explain("read", file, "", err)
	}
	for _, m := range cleanMappings(string(data), program) {
		if _, _, e := sys.Syscall(sys.SYS_MADVISE, m.start, m.end-m.start, sys.MADV_DONTNEED); e != 0 {
			return fmt.Errorf("forget %x-%x of %s: %w", m.start, m.end, program, e)
		}
	}
	return nil
}

type mapping struct{ start, end uintptr }

// cleanMappings are the mappings of a program's code and constants, in smaps, that are
// unchanged from its file. Mappings that were ever written to are left: a dynamic linker
// relocates constants before it makes them read-only (RELRO), and their content would be
// lost.
//
//	00400000-0114d000 r-xp 00000000 fe:00 1234  /usr/bin/homenode
//	Rss:               10184 kB
//	Anonymous:             0 kB
//	Swap:                  0 kB
func cleanMappings(smaps, program string) (clean []mapping) {
	var now mapping
	candidate, said := false, 0 // lines that say 0
	for line := range strings.Lines(smaps) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 5 && strings.Contains(f[0], "-"):
			now, candidate = programMapping(f, program)
			said = 0
		case candidate && len(f) == 3 && f[1] == "0" && (f[0] == "Anonymous:" || f[0] == "Swap:"):
			if said++; said == 2 {
				clean = append(clean, now)
			}
		}
	}
	return clean
}

// programMapping reads the first line of a mapping.
func programMapping(f []string, program string) (m mapping, ok bool) {
	if len(f) != 6 || f[5] != program || len(f[1]) != 4 || f[1][0] != 'r' || f[1][1] != '-' || f[1][3] != 'p' {
		return mapping{}, false
	}
	a, b, _ := strings.Cut(f[0], "-")
	start, err1 := strconv.ParseUint(a, 16, strconv.IntSize)
	end, err2 := strconv.ParseUint(b, 16, strconv.IntSize)
	return mapping{uintptr(start), uintptr(end)}, err1 == nil && err2 == nil && start < end
}
