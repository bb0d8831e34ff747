// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
)

// Table is the functions of one file.
type Table struct {
	loads []load
	funcs []function // by address
}

// load is a PT_LOAD segment: what of the file is mapped where.
type load struct{ off, size, addr uint64 }

type function struct {
	addr, end uint64
	name      string
}

// maxFunctions bounds what one file may make us hold (a browser has 400,000).
const maxFunctions = 1 << 20

// Read reads the functions of an ELF file. One that was stripped of both its
// symbol tables has none, which is no error.
func Read(r io.ReaderAt) (t *Table, err error) {
	defer func() { // debug/elf has panicked on crafted files before
		if p := recover(); p != nil {
			t, err = nil, fmt.Errorf("read ELF file: %v", p)
		}
	}()
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, fmt.Errorf("read ELF file: %w", err)
	}
	t = &Table{}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			t.loads = append(t.loads, load{p.Off, p.Filesz, p.Vaddr})
		}
	}
	for _, read := range []func() ([]elf.Symbol, error){f.Symbols, f.DynamicSymbols} {
		symbols, err := read()
		if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
			return nil, fmt.Errorf("read ELF file: symbols: %w", err)
		}
		t.add(symbols)
	}
	slices.SortStableFunc(t.funcs, func(a, b function) int { return cmp.Compare(a.addr, b.addr) })
	return t, nil
}

func (t *Table) add(symbols []elf.Symbol) {
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF || s.Name == "" || len(t.funcs) == maxFunctions {
			continue
		}
		t.funcs = append(t.funcs, function{s.Value, s.Value + s.Size, s.Name})
	}
}

// Function returns the function that the byte at this offset of the file is in.
// A function without a size (hand-written assembly) reaches to the next one.
func (t *Table) Function(offset uint64) (string, bool) {
	for _, l := range t.loads {
		if offset < l.off || offset-l.off >= l.size {
			continue
		}
		return t.at(l.addr + offset - l.off)
	}
	return "", false
}

func (t *Table) at(addr uint64) (string, bool) {
	after := sort.Search(len(t.funcs), func(i int) bool { return t.funcs[i].addr > addr })
	for i := after - 1; i >= 0 && i >= after-4; i-- { // aliases, and a small one inside a larger
		f := t.funcs[i]
		if addr < f.end || f.end == f.addr {
			return f.name, true
		}
	}
	return "", false
}
