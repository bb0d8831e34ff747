// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"fmt"
	"sort"
	"strings"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// Space is a process's address space as of its first sample.
type Space struct {
	Name  string // comm
	areas []procfs.Area
	// symbols of a mapped file; nil: it has none, or cannot be read
	symbols func(path string) *symbolTable
}

// Spaces looks processes up.
type Spaces interface {
	// Space returns the address space of a process; false when it is gone or may not be
	// read.
	Space(pid int) (Space, bool)
}

// live reads /proc. Symbol tables are read through the process's own root, because a
// container's /usr/bin/x is not the host's, and kept by file. The owner of the process
// may have put anything there.
type live struct {
	root   unix.Root
	buf    unix.Buffer
	tables map[string]*symbolTable
	held   int // bytes of all tables
}

// LiveSpaces looks processes up below root.
func LiveSpaces(root unix.Root) Spaces { return &live{root: root, tables: map[string]*symbolTable{}} }

func (l *live) Space(pid int) (Space, bool) {
	areas, err := procfs.ReadAreas(&l.buf, l.root.Path(fmt.Sprintf("/proc/%d/maps", pid)), procfs.MapsBudget())
	if err != nil {
		return Space{}, false
	}
	comm, err := l.buf.ReadFile(l.root.Path(fmt.Sprintf("/proc/%d/comm", pid)))
	if err != nil {
		return Space{}, false
	}
	return Space{
		Name: strings.TrimSpace(string(comm)), areas: areas,
		symbols: func(path string) *symbolTable { return l.table(pid, path) },
	}, true
}

// maxFile bounds the files whose symbols are read, maxHeld the memory of all symbols.
const maxFile, maxHeld = 2 << 30, 512 << 20

func (l *live) table(pid int, path string) *symbolTable {
	f, st, err := unix.OpenInside(l.root.Path(fmt.Sprintf("/proc/%d/root", pid)), path)
	if err != nil {
		return nil
	}
	defer f.Close()
	key := fmt.Sprint(st.Dev, st.Ino, st.Size, st.Mtim)
	if t, known := l.tables[key]; known {
		return t
	}
	if st.Size > maxFile || l.held > maxHeld {
		return nil
	}
	l.tables[key] = nil
	t, err := readSymbols(f)
	if err != nil {
		return nil
	}
	l.tables[key] = t
	l.held += t.Bytes()
	return t
}

// area finds the mapping of an address.
func (s Space) area(addr uint64) (procfs.Area, bool) {
	i := sort.Search(len(s.areas), func(i int) bool { return s.areas[i].End > addr })
	if i == len(s.areas) || addr < s.areas[i].Start {
		return procfs.Area{}, false
	}
	return s.areas[i], true
}

// label names a mapping for people.
func label(a procfs.Area) string {
	if a.Path != "" {
		return a.Path
	}
	return fmt.Sprintf("anon %x", a.Start)
}

// function names the place of an instruction: "symbol", or "program+0x1234" with the
// offset in the file.
func (s Space) function(ip uint64) string {
	a, ok := s.area(ip)
	if !ok {
		return fmt.Sprintf("%#x", ip)
	}
	if !strings.HasPrefix(a.Path, "/") {
		return fmt.Sprintf("%s+%#x", label(a), ip-a.Start)
	}
	off := ip - a.Start + a.Offset
	if t := s.symbols(a.Path); t != nil {
		if name, ok := t.Function(off); ok {
			return name
		}
	}
	return fmt.Sprintf("%s+%#x", a.Path[strings.LastIndexByte(a.Path, '/')+1:], off)
}
