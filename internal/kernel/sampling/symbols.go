// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
	"unsafe"
)

// symbolTable is the functions of one file.
type symbolTable struct {
	names int // bytes
	loads []loadSegment
	funcs []function // by address
}

// loadSegment is a PT_LOAD segment: which part of the file is mapped where.
type loadSegment struct{ off, size, addr uint64 }

type function struct {
	addr, end uint64
	name      string
}

// maxSymbols bounds how many functions one file can make us keep (a browser has
// 400,000).
const maxSymbols = 1 << 20

const (
	// maxHeaders is the most that is read of a file's headers: a program has some 40
	// sections and segments, 64 bytes each, and their names. debug/elf copies each
	// section's name, and all names may be the same one.
	maxHeaders = 64 << 10
	maxSection = 128 << 20 // a browser's names have 100 MB
	maxName    = 4 << 10   // longer ones are left out
)

// readSymbols reads the functions of an ELF file. A file that was stripped of both its symbol
// tables has none, which is no error.
func readSymbols(r io.ReaderAt) (t *symbolTable, err error) {
	defer func() { // debug/elf has panicked on crafted files before
		if p := recover(); p != nil {
			t, err = nil, fmt.Errorf("read ELF file: %v", p)
		}
	}()
	head := &bounded{r, maxHeaders}
	f, err := elf.NewFile(head)
	if err != nil {
		return nil, fmt.Errorf("read ELF file: %w", err)
	}
	t = &symbolTable{}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			t.loads = append(t.loads, loadSegment{p.Off, p.Filesz, p.Vaddr})
		}
	}
	head.left = math.MaxInt64 // sections have bounds of their own
	for _, kind := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		if err := t.addSection(f, f.SectionByType(kind)); err != nil {
			return nil, fmt.Errorf("read ELF file: symbols: %w", err)
		}
	}
	slices.SortStableFunc(t.funcs, func(a, b function) int { return cmp.Compare(a.addr, b.addr) })
	return t, nil
}

// addSection reads the functions of a symbol table. debug/elf would copy each symbol's name,
// and 100,000 of them may be one text of 100 MB: here names are substrings of one
// string.
func (t *symbolTable) addSection(f *elf.File, s *elf.Section) error {
	if s == nil {
		return nil
	}
	if int64(s.Link) >= int64(len(f.Sections)) {
		return fmt.Errorf("%s: no section %d for its names", s.Name, s.Link)
	}
	data, err := content(s)
	if err != nil {
		return err
	}
	names, err := content(f.Sections[s.Link])
	if err != nil {
		return err
	}
	text := string(names)
	t.names += len(text)
	size := elf.Sym64Size
	if f.Class == elf.ELFCLASS32 {
		size = elf.Sym32Size
	}
	for ; len(data) >= size && len(t.funcs) < maxSymbols; data = data[size:] {
		sym := symbolOf(f, data)
		if elf.ST_TYPE(sym.Info) != elf.STT_FUNC || elf.SectionIndex(sym.Shndx) == elf.SHN_UNDEF || int64(sym.Name) >= int64(len(text)) {
			continue
		}
		name := text[sym.Name:]
		name = name[:max(0, strings.IndexByte(name[:min(len(name), maxName)], 0))]
		if name != "" {
			t.funcs = append(t.funcs, function{sym.Value, sym.Value + sym.Size, name})
		}
	}
	return nil
}

// symbolOf decodes one entry of a symbol table.
func symbolOf(f *elf.File, b []byte) elf.Sym64 {
	o := f.ByteOrder
	if f.Class == elf.ELFCLASS32 {
		return elf.Sym64{Name: o.Uint32(b), Value: uint64(o.Uint32(b[4:])), Size: uint64(o.Uint32(b[8:])), Info: b[12], Shndx: o.Uint16(b[14:])}
	}
	return elf.Sym64{Name: o.Uint32(b), Info: b[4], Shndx: o.Uint16(b[6:]), Value: o.Uint64(b[8:]), Size: o.Uint64(b[16:])}
}

// content is a section's bytes in the file.
func content(s *elf.Section) ([]byte, error) {
	if s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_COMPRESSED != 0 || s.FileSize > maxSection {
		return nil, fmt.Errorf("section %.40q has %d bytes, or is of a kind that is not read", s.Name, s.FileSize)
	}
	data := make([]byte, s.FileSize)
	if _, err := s.ReadAt(data, 0); err != nil {
		return nil, err
	}
	return data, nil
}

// bounded reads this many bytes and no more.
type bounded struct {
	io.ReaderAt
	left int64
}

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errors.New("its headers are too long")
	}
	return b.ReaderAt.ReadAt(p, off)
}

// Bytes is the approximate memory of the table.
func (t *symbolTable) Bytes() int { return t.names + len(t.funcs)*int(unsafe.Sizeof(function{})) }

// Function returns the function that contains the byte at this offset of the file. A
// function without a size (hand-written assembly) reaches to the next one.
func (t *symbolTable) Function(offset uint64) (string, bool) {
	for _, l := range t.loads {
		if offset < l.off || offset-l.off >= l.size {
			continue
		}
		return t.at(l.addr + offset - l.off)
	}
	return "", false
}

func (t *symbolTable) at(addr uint64) (string, bool) {
	after := sort.Search(len(t.funcs), func(i int) bool { return t.funcs[i].addr > addr })
	for i := after - 1; i >= 0 && i >= after-4; i-- { // aliases, and a small one inside a larger
		f := t.funcs[i]
		if addr < f.end || f.end == f.addr {
			return f.name, true
		}
	}
	return "", false
}
