// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"errors"

	"homenode/internal/set"
)

var (
	errRange  = errors.New("not START-END in hexadecimal")
	errNodeID = errors.New("not a node and its pages")
	errDevice = errors.New("not MAJOR:MINOR")
)

// VMA is one mapping as /proc/PID/numa_maps shows it.
type VMA struct {
	Start    uint64
	Policy   string // as printed: "default", "bind:0", "prefer (many):0-1"
	PageSize uint64 // bytes; the unit of the counts below
	Anon     uint64 // pages; part of the sum over Nodes
	Nodes    []NodePages
	Huge     bool // hugetlb
}

// NodePages counts pages of a mapping on one node.
type NodePages struct {
	Node  int
	Pages uint64
}

// Pages is the number of all pages.
func (v VMA) Pages() (sum uint64) {
	for _, n := range v.Nodes {
		sum += n.Pages
	}
	return sum
}

// Explicit says that the placement of the pages was requested: the policy is neither
// the default nor local.
func (v VMA) Explicit() bool { return v.Policy != "default" && v.Policy != "local" }

// NumaLine is a line of /proc/PID/numa_maps in place: its texts point into the line,
// and Nodes is reused for the next line. A process may have 50,000.
type NumaLine struct {
	Start    uint64
	Policy   []byte
	File     []byte // as printed, blanks as \040; nil when it maps no file
	Heap     bool
	Stack    bool
	Huge     bool   // hugetlb
	PageSize uint64 // bytes; the unit of all counts
	Anon     uint64
	Dirty    uint64
	MapMax   uint64 // page tables that map its most shared page; 0: none but this
	Nodes    []NodePages
}

// VMA is the part of a line that is kept; its nodes are valid until the next Parse.
func (l *NumaLine) VMA() VMA {
	policy := "default" // nearly always
	if string(l.Policy) != policy {
		policy = string(l.Policy)
	}
	return VMA{l.Start, policy, l.PageSize, l.Anon, l.Nodes, l.Huge}
}

// Parse reads line n of /proc/PID/numa_maps (since 2.6.14; kernelpagesize_kB since 3.0,
// where it is missing, also because nothing is mapped, 4 KiB is taken). Counts are in
// pages of that size; a transparent huge page counts as 512 small ones.
//
//	559f03f63000 default file=/usr/bin/head mapped=2 N0=2 kernelpagesize_kB=4
//	7f3c40000000 bind:0 anon=512 dirty=512 N0=512 kernelpagesize_kB=4
//	7f3c60000000 prefer (many):0-1 anon=1 dirty=1 N1=1 kernelpagesize_kB=4
//	7f3c80000000 default file=/dev/hugepages/x huge dirty=3 N0=3 kernelpagesize_kB=2048
//
// Two policies have a blank in their name (policy_modes in mm/mempolicy.c). File
// names have none: show_numa_map in fs/proc/task_mmu.c escapes it. On error the
// line is zero.
func (l *NumaLine) Parse(n int, line []byte) error {
	if err := l.parse(line); err != nil {
		*l = NumaLine{}
		return malformed("/proc/PID/numa_maps", n, line, err)
	}
	return nil
}

// parse reads the line once, by index: a fold spends most of its time here.
func (l *NumaLine) parse(b []byte) error {
	l.Policy, l.File, l.Heap, l.Stack, l.Huge = nil, nil, false, false, false
	l.PageSize, l.Anon, l.Dirty, l.MapMax, l.Nodes = 4096, 0, 0, 0, l.Nodes[:0]
	i, ok := l.addr(b)
	if !ok {
		return errRange
	}
	from := min(i+1, len(b))
	if i = policyEnd(b, from); i == from {
		return errShort
	}
	l.Policy = b[from:i]
	var err error
	for i < len(b) && err == nil {
		if b[i] == ' ' {
			i++
			continue
		}
		i, err = l.field(b, i)
	}
	return err
}

// addr reads the address and returns where it ends.
func (l *NumaLine) addr(b []byte) (end int, ok bool) {
	var v uint64
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			l.Start = v
			return i, c == ' ' && i > 0 && i <= 16
		}
	}
	l.Start = v
	return len(b), len(b) > 0 && len(b) <= 16
}

// policyEnd is the end of a name that may have a blank: "prefer (many):0-1", "weighted
// interleave:0".
func policyEnd(b []byte, i int) int {
	end := fieldEnd(b, i)
	if s := string(b[i:end]); s == "prefer" || s == "weighted" {
		return fieldEnd(b, min(end+1, len(b)))
	}
	return end
}

func fieldEnd(b []byte, i int) int {
	for i < len(b) && b[i] != ' ' {
		i++
	}
	return i
}

// field reads the field at i and returns where it ends. If the first letter rules out
// our fields, it looks no further.
func (l *NumaLine) field(b []byte, i int) (int, error) {
	switch b[i] {
	case 'N':
		return l.node(b, i+1)
	case 'a':
		return count(b, i, "anon=", &l.Anon)
	case 'd':
		return count(b, i, "dirty=", &l.Dirty)
	case 'm':
		return count(b, i, "mapmax=", &l.MapMax)
	case 'k':
		return l.pageSize(b, i)
	}
	end := fieldEnd(b, i)
	switch f := b[i:end]; f[0] {
	case 'f':
		if v, ok := bytes.CutPrefix(f, []byte("file=")); ok {
			l.File = v
		}
	case 'h':
		l.Heap = l.Heap || string(f) == "heap"
		l.Huge = l.Huge || string(f) == "huge"
	case 's':
		l.Stack = l.Stack || string(f) == "stack"
	}
	return end, nil
}

// digits reads a decimal that ends at a blank, '=' or the end. Without one, or with one
// above maxPages, ok is false.
func digits(b []byte, i int) (v uint64, end int, ok bool) {
	from := i
	for i < len(b) && b[i]-'0' <= 9 {
		v = v*10 + uint64(b[i]-'0')
		i++
	}
	return v, i, i > from && i-from <= 13 && v <= maxPages && (i == len(b) || b[i] == ' ' || b[i] == '=')
}

// maxPages keeps products with a page size of at most 16 GiB far from overflowing.
const maxPages = 1 << 40

// count reads "anon=512"; another field, such as "active=3", is skipped.
func count(b []byte, i int, key string, into *uint64) (int, error) {
	at := i + len(key)
	if at > len(b) || string(b[i:at]) != key {
		return fieldEnd(b, i), nil
	}
	v, end, ok := digits(b, at)
	if !ok || end < len(b) && b[end] != ' ' {
		return end, errNumber
	}
	*into = v
	return end, nil
}

func (l *NumaLine) pageSize(b []byte, i int) (int, error) {
	kib := l.PageSize / 1024
	end, err := count(b, i, "kernelpagesize_kB=", &kib)
	if err != nil || kib == 0 || kib > 1<<24 {
		return end, errNumber
	}
	l.PageSize = kib * 1024
	return end, nil
}

// node reads "0=512" of "N0=512".
func (l *NumaLine) node(b []byte, i int) (int, error) {
	node, at, ok1 := digits(b, i)
	if !ok1 || at == len(b) || b[at] != '=' {
		return at, errNodeID
	}
	pages, end, ok2 := digits(b, at+1)
	if !ok2 || node > set.MaxNode || end < len(b) && b[end] != ' ' {
		return end, errNodeID
	}
	l.Nodes = append(l.Nodes, NodePages{int(node), pages})
	return end, nil
}

// Path is the file's real name: blanks and the like unescaped, " (deleted)" at its end
// when it has no name any more.
func (l *NumaLine) Path() string { return unescape(l.File) }
