// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"errors"
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

// ParseNumaMaps reads /proc/PID/numa_maps (since 2.6.14; kernelpagesize_kB since
// 3.0, 4 KiB is taken where it is missing). Counts are in pages of that size; a
// transparent huge page counts as 512 small ones.
//
//	559f03f63000 default file=/usr/bin/head mapped=2 N0=2 kernelpagesize_kB=4
//	7f3c40000000 bind:0 anon=512 dirty=512 N0=512 kernelpagesize_kB=4
//	7f3c60000000 prefer (many):0-1 anon=1 dirty=1 N1=1 kernelpagesize_kB=4
//
// Two policies have a blank in their name (policy_modes in mm/mempolicy.c).
func ParseNumaMaps(data []byte) ([]VMA, error) {
	var all []VMA
	for n, line := range lines(data) {
		if len(line) == 0 {
			continue
		}
		v, err := parseNumaLine(line)
		if err != nil {
			return nil, malformed("/proc/PID/numa_maps", n, line, err)
		}
		all = append(all, v)
	}
	return all, nil
}

func parseNumaLine(line []byte) (VMA, error) {
	addr, rest := nextField(line)
	start, err := hex(addr)
	if err != nil {
		return VMA{}, errRange
	}
	v := VMA{Start: start, PageSize: 4096}
	if v.Policy, rest = policy(rest); v.Policy == "" {
		return VMA{}, errShort
	}
	for f, rest := nextField(rest); len(f) > 0; f, rest = nextField(rest) {
		if err := v.addField(f); err != nil {
			return VMA{}, err
		}
	}
	return v, nil
}

// policy joins a name that has a blank: "prefer (many):0-1", "weighted interleave:0".
func policy(rest []byte) (string, []byte) {
	first, rest := nextField(rest)
	if s := string(first); s == "prefer" || s == "weighted" {
		second, rest := nextField(rest)
		return s + " " + string(second), rest
	}
	return string(first), rest
}

// addField takes N<node>=, anon= and kernelpagesize_kB=; file names are escaped
// by the kernel and cannot contain a blank.
func (v *VMA) addField(f []byte) (err error) {
	key, val, ok := bytes.Cut(f, []byte("="))
	switch {
	case !ok:
	case string(key) == "anon":
		v.Anon, err = number(val)
	case string(key) == "kernelpagesize_kB":
		v.PageSize, err = number(val)
		v.PageSize *= 1024
		if err == nil && (v.PageSize < 1024 || v.PageSize > 1<<40) {
			return errNumber
		}
	case len(key) > 1 && key[0] == 'N':
		return v.addNode(key[1:], val)
	}
	return err
}

func (v *VMA) addNode(key, val []byte) error {
	node, err1 := number(key)
	pages, err2 := number(val)
	if err1 != nil || err2 != nil || node > set.MaxNode || pages > 1<<40 {
		return errNodeID
	}
	v.Nodes = append(v.Nodes, NodePages{int(node), pages})
	return nil
}

// Mode is the policy without its nodes and flags: "bind=static:0-1" is bind.
func (v VMA) Mode() string {
	if i := strings.IndexAny(v.Policy, "=:"); i >= 0 {
		return v.Policy[:i]
	}
	return v.Policy
}
