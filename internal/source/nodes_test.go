// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"strings"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// fakeNodes has nodes 0, 2 and 4, of which 4 has no memory, and may use limit.
func fakeNodes(limit ...int) nodeReader {
	m := machine.Machine{}
	for _, n := range []struct {
		id     int
		memory unit.Bytes
	}{{0, unit.GiB}, {2, unit.GiB}, {4, 0}} {
		m.Nodes = append(m.Nodes, machine.Node{ID: n.id, Memory: unit.Some(n.memory)})
	}
	return nodeReader{
		machine: func() (machine.Machine, error) { return m, nil },
		allowed: func() (set.NodeSet, error) { return set.FromNodes(limit...), nil },
		device: func(kind, name string) (unit.Opt[int], error) {
			switch name {
			case "eth0":
				return unit.Some(2), nil
			case "eth1":
				return unit.None[int](), nil
			}
			return unit.None[int](), errors.New(kind + ":" + name + ": there is no such device")
		},
	}
}

func TestDecodeNodes(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "0": "0", "0,2-3": "0,2-3", "all": "0,2", "!0": "2", "!2": "0", "+0": "0", "+1": "2", "+0-1": "0,2", "!+0": "2", "netdev:eth0": "2", "pci:eth0": "2", "0-3:1/2": "0,2",
	} {
		if got, err := fakeNodes().nodes(text); err != nil || got.String() != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	if got, err := fakeNodes(2).nodes("+0"); err != nil || got.String() != "2" {
		t.Errorf("within a cpuset of node 2, +0 is %s, %v", got, err)
	}
	for text, want := range map[string]string{
		"x": "netdev:eth0", "!": "", "!0,2": "leaves no node", "!all": "leaves no node", "+": "+0", "+2": "may use 2 nodes (0,2)", "+all": "want ids", "netdev:eth1": "name one of 0,2", "netdev:eth7": "no such device", "usb:1": "want ids",
	} {
		got, err := fakeNodes().nodes(text)
		if want == "" {
			if err != nil || got.String() != "0,2" {
				t.Errorf("%q: %s, %v", text, got, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || !got.IsEmpty() {
			t.Errorf("%q: %s, %v, want %q", text, got, err, want)
		}
	}
}

// An error comes with no nodes; what is printed reads back.
func FuzzNodes(f *testing.F) {
	for _, s := range []string{"", "0,2-3", "!0", "+0-1", "!+1", "all", "netdev:eth0", "0-31:2/8", "+:", "!!"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := fakeNodes()
		got, err := r.nodes(text)
		if err != nil && !got.IsEmpty() {
			t.Fatalf("%q: %s beside %v", text, got, err)
		}
		if again, err := r.nodes(got.String()); err != nil || !again.Equal(got) {
			t.Errorf("%q: %s reads back as %s, %v", text, got, again, err)
		}
	})
}
