// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"homenode/internal/set"
)

var (
	errRange  = errors.New("not START-END in hexadecimal")
	errNodeID = errors.New("not a node and its pages")
)

// VMA is one mapping as /proc/PID/numa_maps shows it.
type VMA struct {
	Start    uint64
	Policy   string // as printed: "default", "bind:0", "prefer (many):0-1"
	PageSize uint64 // bytes; the unit of the counts below
	Anon     uint64 // pages; part of the sum over Nodes
	Nodes    []NodePages
}

// NodePages counts pages of a mapping on one node.
type NodePages struct {
	Node  int
	Pages uint64
}

// Pages is all of them.
func (v VMA) Pages() (sum uint64) {
	for _, n := range v.Nodes {
		sum += n.Pages
	}
	return sum
}

// Explicit says that the pages' placement was asked for: the policy is neither
// the default nor local.
func (v VMA) Explicit() bool { return v.Policy != "default" && v.Policy != "local" }

// Mode is the policy without its nodes and flags: "bind=static:0-1" is bind.
func (v VMA) Mode() string {
	if i := strings.IndexAny(v.Policy, "=:"); i >= 0 {
		return v.Policy[:i]
	}
	return v.Policy
}

// NumaLine is a line of /proc/PID/numa_maps in place: its texts point into the
// line, and Nodes is used again for the next one. A process may have 50,000.
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

// ParseNumaMaps reads /proc/PID/numa_maps (see NumaLine.Parse).
func ParseNumaMaps(data []byte) ([]VMA, error) {
	var all []VMA
	var l NumaLine
	for n, line := range lines(data) {
		if len(line) == 0 {
			continue
		}
		if err := l.Parse(n, line); err != nil {
			return nil, err
		}
		all = append(all, VMA{l.Start, string(l.Policy), l.PageSize, l.Anon, slices.Clone(l.Nodes)})
	}
	return all, nil
}

// Parse reads line n of /proc/PID/numa_maps (since 2.6.14; kernelpagesize_kB
// since 3.0, 4 KiB is taken where it is missing, also because nothing is mapped).
// Counts are in pages of that size; a transparent huge page counts as 512 small
// ones.
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

func (l *NumaLine) parse(line []byte) error {
	*l = NumaLine{PageSize: 4096, Nodes: l.Nodes[:0]}
	addr, rest := cutBlank(line)
	var ok bool
	if l.Start, ok = hexAddr(addr); !ok {
		return errRange
	}
	if l.Policy, rest = policy(rest); len(l.Policy) == 0 {
		return errShort
	}
	for len(rest) > 0 {
		var f []byte
		if f, rest = cutBlank(rest); len(f) > 0 {
			if err := l.field(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// cutBlank is nextField for text with single blanks.
func cutBlank(text []byte) (field, rest []byte) {
	if i := bytes.IndexByte(text, ' '); i >= 0 {
		return text[:i], text[i+1:]
	}
	return text, nil
}

func hexAddr(text []byte) (v uint64, ok bool) {
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint64(c)
	}
	return v, len(text) > 0 && len(text) <= 16
}

// policy takes a name that may have a blank: "prefer (many):0-1", "weighted
// interleave:0".
func policy(rest []byte) (name, after []byte) {
	name, after = cutBlank(rest)
	if s := string(name); s == "prefer" || s == "weighted" {
		second, after := cutBlank(after)
		return rest[:len(name)+1+len(second)], after
	}
	return name, after
}

// field looks at the first letter: most of a large file is this switch.
func (l *NumaLine) field(f []byte) (err error) {
	switch f[0] {
	case 'N':
		return l.node(f[1:])
	case 'k':
		return l.pageSize(f)
	case 'f':
		if v, ok := bytes.CutPrefix(f, []byte("file=")); ok {
			l.File = v
		}
	case 'a':
		l.Anon, err = count(f, "anon=", l.Anon)
	case 'd':
		l.Dirty, err = count(f, "dirty=", l.Dirty)
	case 'm':
		l.MapMax, err = count(f, "mapmax=", l.MapMax)
	case 'h':
		l.Heap = l.Heap || string(f) == "heap"
		l.Huge = l.Huge || string(f) == "huge"
	case 's':
		l.Stack = l.Stack || string(f) == "stack"
	}
	return err
}

// count reads "anon=512"; another field leaves what was there.
func count(f []byte, key string, was uint64) (uint64, error) {
	if len(f) < len(key) || string(f[:len(key)]) != key {
		return was, nil
	}
	n, err := number(f[len(key):])
	if err == nil && n > maxPages {
		err = errNumber
	}
	return n, err
}

// maxPages keeps products with a page size far from overflowing where the size
// is at most 16 GiB.
const maxPages = 1 << 40

func (l *NumaLine) pageSize(f []byte) error {
	kib, err := count(f, "kernelpagesize_kB=", l.PageSize/1024)
	if err != nil || kib == 0 || kib > 1<<24 {
		return errNumber
	}
	l.PageSize = kib * 1024
	return nil
}

// node reads "0=512" of "N0=512".
func (l *NumaLine) node(f []byte) error {
	i := bytes.IndexByte(f, '=')
	if i <= 0 {
		return errNodeID
	}
	node, err1 := number(f[:i])
	pages, err2 := number(f[i+1:])
	if err1 != nil || err2 != nil || node > set.MaxNode || pages > maxPages {
		return errNodeID
	}
	l.Nodes = append(l.Nodes, NodePages{int(node), pages})
	return nil
}

// Path is the file's name as the kernel means it: blanks and the like unescaped,
// " (deleted)" at its end when it has no name any more.
func (l *NumaLine) Path() string { return unescape(l.File) }
