// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"os"
	"runtime"
	"strings"
	"testing"

	sys "golang.org/x/sys/unix"

	"homenode/internal/set"
)

func TestDecodePolicy(t *testing.T) {
	numbers := map[int]bool{}
	for _, p := range MemPolicies() {
		got, err := ParseMemPolicy(string(p))
		if err != nil || got != p || !p.Known() || p.TakesNodes() == (p == PolicyLocal) || p.Number() == 0 || numbers[p.Number()] || !strings.HasPrefix(p.Numactl(), "--") {
			t.Errorf("%s: %q, number %d, %q, %v", p, got, p.Number(), p.Numactl(), err)
		}
		numbers[p.Number()] = true
	}
	if p, err := ParseMemPolicy(""); err != nil || p != "" || p.Known() || p.TakesNodes() || p.Number() != 0 {
		t.Errorf("none: %q, %v", p, err)
	}
	if _, err := ParseMemPolicy("membind"); err == nil || !strings.Contains(err.Error(), "want local, bind") {
		t.Error(err)
	}
	if PolicyPreferredMany.Since() != "5.15" || PolicyWeightedInterleave.Since() != "6.9" || PolicyBind.Since() != "" {
		t.Error("first kernels")
	}
}

func TestDecisionNodemask(t *testing.T) {
	if at, bits := nodemask(set.NodeSet{}); at != nil || bits != 0 {
		t.Errorf("none: %d bits", bits)
	}
	if _, bits := nodemask(set.FromNodes(0, 130)); bits != 193 {
		t.Errorf("%d bits, want one more than 192", bits)
	}
}

// get_nodes reads maxnode − 1 bits: with one less, node 63 would be lost, and a set of
// only that node would look empty.
func TestLiveHighestBit(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := SetMemPolicy(PolicyInterleave.Number(), set.FromNodes(0, 63)); err != nil {
		t.Skipf("this kernel refuses a set with a node that is not there: %v", err)
	}
	mode, got, err := GetMemPolicy()
	if err != nil || mode != PolicyInterleave.Number() || !got.Has(0) {
		t.Errorf("%d of %s, %v", mode, got, err)
	}
	if err := SetMemPolicy(0, set.NodeSet{}); err != nil {
		t.Error(err)
	}
}

// The highest node that a mask can name counts: otherwise bind would have no nodes, or
// only the others.
func TestLiveMbindLastNode(t *testing.T) {
	mem, err := sys.Mmap(-1, 0, os.Getpagesize(), sys.PROT_READ|sys.PROT_WRITE, sys.MAP_PRIVATE|sys.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Munmap(mem)
	if err := Mbind(mem, PolicyBind, set.FromNodes(0), 0); err != nil {
		t.Skipf("nothing can be bound here: %v", err)
	}
	if err := Mbind(mem, PolicyBind, set.FromNodes(set.MaxNode), 0); err == nil {
		t.Errorf("node %d was taken", set.MaxNode)
	}
	if err := Mbind(mem, PolicyLocal, set.NodeSet{}, 0); err != nil {
		t.Error(err)
	}
}
