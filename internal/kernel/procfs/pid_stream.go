// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"fmt"
	"slices"
	"time"

	"homenode/internal/kernel/unix"
)

// Bounds of what is kept of one process's mappings. A process may have 65,530
// (vm.max_map_count; an administrator may allow more), each of a file of its own with a
// path of 4 KiB, in which the kernel prints four bytes for each character that is not
// plain.
const (
	maxMappings = 1 << 20
	// maxNames bounds the bytes of different paths and policies: 65,530 files of 120
	// bytes.
	maxNames = 8 << 20
)

// MapsBudget is for the mappings of one process, where all of them are needed: to move
// or count its pages. It allows the text of 65,530 mappings with the longest possible
// path in plain characters; and the kernel walks all page tables for it: some 15 s for
// 1 TiB.
func MapsBudget() *unix.Budget { return unix.NewBudget(256<<20, 30*time.Second) }

// names keeps one copy of each text.
type names struct {
	all  map[string]string
	held int
}

func (s *names) of(text string) (string, error) {
	if known, ok := s.all[text]; ok {
		return known, nil
	}
	if s.held += len(text); s.held > maxNames {
		return "", fmt.Errorf("paths of more than %d bytes (%w)", maxNames, unix.ErrTooLarge)
	}
	if s.all == nil {
		s.all = map[string]string{}
	}
	s.all[text] = text
	return text, nil
}

func checkMappings(n int) error {
	if n > maxMappings {
		return fmt.Errorf("more than %d mappings (%w)", maxMappings, unix.ErrTooLarge)
	}
	return nil
}

// ReadAreas is ParseAreas of a file, line by line and within a budget.
func ReadAreas(buf *unix.Buffer, path string, b *unix.Budget) ([]Area, error) {
	var all []Area
	var names names
	err := buf.Lines(path, "/proc/PID/maps", b, func(n int, line []byte) error {
		a, err := parseArea("/proc/PID/maps", n, line)
		if err == nil {
			err = checkMappings(n)
		}
		if err == nil {
			a, err = names.area(a)
		}
		all = append(all, a)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (s *names) area(a Area) (_ Area, err error) {
	if a.Access, err = s.of(a.Access); err == nil {
		a.Path, err = s.of(a.Path)
	}
	return a, err
}

// ReadNumaMaps reads /proc/PID/numa_maps (see NumaLine.Parse), within a budget.
func ReadNumaMaps(buf *unix.Buffer, path string, b *unix.Budget) ([]VMA, error) {
	var all []VMA
	var l NumaLine
	var names names
	err := buf.Lines(path, "/proc/PID/numa_maps", b, func(n int, line []byte) error {
		if err := l.Parse(n, line); err != nil {
			return err
		}
		policy, err := names.of(string(l.Policy))
		if err == nil {
			err = checkMappings(n)
		}
		all = append(all, VMA{l.Start, policy, l.PageSize, l.Anon, slices.Clone(l.Nodes), l.Huge})
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// ReadSmaps reads /proc/PID/smaps (see smapsParser), within a budget.
func ReadSmaps(buf *unix.Buffer, path string, b *unix.Budget) ([]SmapsArea, error) {
	var p smapsParser
	var names names
	err := buf.Lines(path, "/proc/PID/smaps", b, func(n int, line []byte) error {
		had := len(p.all)
		err := p.line(n, line)
		if last := len(p.all) - 1; err == nil && last >= had {
			p.all[last].Area, err = names.area(p.all[last].Area)
		}
		if err == nil {
			err = checkMappings(len(p.all))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return p.end()
}

// ReadMapped calls each with the file of each mapping of /proc/PID/maps that has one, as
// often as it is mapped, within a budget. It returns the number of mappings.
func ReadMapped(buf *unix.Buffer, path string, b *unix.Budget, each func(dev, inode uint64, sysV bool)) (mappings int, err error) {
	err = buf.Lines(path, "/proc/PID/maps", b, func(n int, line []byte) error {
		mappings = n
		return mapped(n, line, each)
	})
	return mappings, err
}
