// SPDX-License-Identifier: Apache-2.0

package set

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The kernel's list format (bitmap_parselist in lib/bitmap-str.c, printed by
// "%*pbl"), for instance
//
//	/sys/devices/system/cpu/online          0-3,8
//	/sys/fs/cgroup/…/cpuset.mems.effective  0,2-3
//
// Ids are decimal, ranges inclusive; "0-31:2/8" means the first 2 of every 8.
// Printed since 2.6.25 (cpulist files), strides understood since 4.12.
//
// Stricter than the kernel on purpose: it refuses what the kernel tolerates on write but
// never prints, and what a person hardly means ("1,,2", "1 2", "all", "N").

var (
	errEmptyField = errors.New("empty field")
	errNotNumber  = errors.New("not a decimal number")
	errReversed   = errors.New("the range ends before it starts")
	errStride     = errors.New("a stride is USED/GROUP with USED <= GROUP and GROUP > 0")
)

// ParseCPUs reads a CPU list. On error the set is empty.
func ParseCPUs(s string) (CPUSet, error) { return parseList[CPU](s) }

// ParseNodes reads a node list. On error the set is empty.
func ParseNodes(s string) (NodeSet, error) { return parseList[Node](s) }

// SameCPUs reports that two lists have the same members. A text that is not a list equals
// only itself.
func SameCPUs(a, b string) bool { return sameList[CPU](a, b) }

// SameNodes reports that two lists have the same members. A text that is not a list
// equals only itself.
func SameNodes(a, b string) bool { return sameList[Node](a, b) }

func sameList[K Kind](a, b string) bool {
	x, err1 := parseList[K](a)
	y, err2 := parseList[K](b)
	return a == b || err1 == nil && err2 == nil && x == y
}

func parseList[K Kind](s string) (Set[K], error) {
	var b builder[K]
	text := trim(s)
	if text == "" {
		return Set[K]{}, nil
	}
	for i, field := range strings.Split(text, ",") {
		field = strings.Trim(field, " \t")
		if err := b.addField(field); err != nil {
			return Set[K]{}, fmt.Errorf("parse %s list %s: field %d %s: %w", b.noun(), clip(text), i+1, clip(field), err)
		}
	}
	return b.set(), nil
}

// addField adds "8", "0-3" or "0-31:2/8".
func (b *builder[K]) addField(field string) error {
	if field == "" {
		return errEmptyField
	}
	span, stride, strided := strings.Cut(field, ":")
	first, last, err := b.span(span)
	if err != nil {
		return err
	}
	used, group := 1, 1
	if strided {
		if used, group, err = parseStride(stride); err != nil {
			return err
		}
	}
	for id := first; id <= last; id++ {
		if (id-first)%group < used {
			b.add(id)
		}
	}
	return nil
}

// span reads "8" or "0-3".
func (b *builder[K]) span(s string) (first, last int, err error) {
	from, to, ranged := strings.Cut(s, "-")
	if first, err = b.id(from); err != nil || !ranged {
		return first, first, err
	}
	if last, err = b.id(to); err != nil {
		return 0, 0, err
	}
	if last < first {
		return 0, 0, errReversed
	}
	return first, last, nil
}

func (b *builder[K]) id(s string) (int, error) {
	if !isDigits(s) {
		return 0, errNotNumber
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > b.max() {
		return 0, fmt.Errorf("%s ids end at %d", b.noun(), b.max())
	}
	return n, nil
}

func parseStride(s string) (used, group int, err error) {
	u, g, ok := strings.Cut(s, "/")
	if !ok || !isDigits(u) || !isDigits(g) {
		return 0, 0, errStride
	}
	used, err1 := strconv.Atoi(u)
	group, err2 := strconv.Atoi(g)
	if err1 != nil || err2 != nil || group == 0 || used > group {
		return 0, 0, errStride
	}
	return used, group, nil
}

// String prints the kernel's list format; the empty set is "".
func (s Set[K]) String() string {
	var out []byte
	first, last := -1, -1
	for id := range s.All() {
		if last >= 0 && id == last+1 {
			last = id
			continue
		}
		out = appendSpan(out, first, last)
		first, last = id, id
	}
	return string(appendSpan(out, first, last))
}

func appendSpan(out []byte, first, last int) []byte {
	if last < 0 {
		return out
	}
	if len(out) > 0 {
		out = append(out, ',')
	}
	out = strconv.AppendInt(out, int64(first), 10)
	if last > first {
		out = strconv.AppendInt(append(out, '-'), int64(last), 10)
	}
	return out
}

// MarshalText makes a set "0-3,8" in JSON, YAML and as a map's key.
func (s Set[K]) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the list format. On error the set becomes empty.
func (s *Set[K]) UnmarshalText(text []byte) (err error) {
	*s, err = parseList[K](string(text))
	return err
}

// trim removes what surrounds a value in a file: newline, blanks, and the NULs
// that some recorded trees are padded with.
func trim(s string) string { return strings.Trim(s, " \t\r\n\x00") }

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// clip quotes text for an error message, at most 40 bytes of it.
func clip(s string) string {
	if len(s) > 40 {
		return strconv.Quote(s[:40]) + "…"
	}
	return strconv.Quote(s)
}
