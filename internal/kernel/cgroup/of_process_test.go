// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"testing"

	"homenode/internal/kernel/procfs"
)

func TestCpusetIn(t *testing.T) {
	v1, v2 := Layout{Cpuset: Hier{Mount: "/c"}}, Layout{Cpuset: Hier{Mount: "/c", V2: true}}
	for _, c := range []struct {
		layout Layout
		text   string
		id     string
		ok     bool
	}{
		{v2, "0::/demo/a\n", "/demo/a", true},
		{v2, "3:cpuset:/b\n0::/demo/a\n", "/demo/a", true},
		{v1, "3:cpuset:/b\n0::/demo/a\n", "/b", true},
		{v1, "4:cpu,cpuset:/b\n", "/b", true},
		{v1, "4:cpusets:/b\n0::/a\n", "", false},
		{v2, "0::/../../other\n", "/other", false}, // outside of our cgroup namespace
		{Layout{}, "0::/demo/a\n", "", false},
	} {
		members, err := procfs.ParsePIDCgroup([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := c.layout.CpusetIn(members); id != c.id || ok != c.ok {
			t.Errorf("%q: %q, %v", c.text, id, ok)
		}
	}
}
