// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/xml"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"homenode/internal/set"
)

// hwlocObject and hwlocDistances are the parts of hwloc's XML that we compare.
type hwlocObject struct {
	Type    string        `xml:"type,attr"`
	Index   int           `xml:"os_index,attr"`
	CPUs    string        `xml:"cpuset,attr"`
	Memory  int64         `xml:"local_memory,attr"`
	Objects []hwlocObject `xml:"object"`
}

type hwlocDistances struct {
	Name    string   `xml:"name,attr"`
	Indexes []string `xml:"indexes"`
	Values  []string `xml:"u64values"`
}

type hwlocTopology struct {
	Objects   []hwlocObject    `xml:"object"`
	Distances []hwlocDistances `xml:"distances2"`
}

// Parity: hwloc's reading of the same trees is an independent check.
func TestParityWithHwloc(t *testing.T) {
	if _, err := exec.LookPath("lstopo-no-graphics"); err != nil {
		t.Skip("hwloc is not installed: no lstopo-no-graphics")
	}
	if testing.Short() {
		t.Skip("-short: writing the trees out for hwloc takes a while")
	}
	compared := 0
	for _, want := range recordedMachines {
		t.Run(want.archive, func(t *testing.T) {
			dir := t.TempDir()
			writeTree(t, dir, unpack(t, want.archive))
			m, _ := parseTree(t, dir, want.archive)
			compared += compareWithHwloc(t, m, want, runHwloc(t, dir))
		})
	}
	if compared == 0 && !t.Skipped() {
		t.Error("nothing was compared")
	}
	t.Logf("%d facts compared", compared)
}

func writeTree(t *testing.T, dir string, files fstest.MapFS) {
	t.Helper()
	for name, f := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil && f.Mode&fs.ModeSymlink != 0 {
			err = os.Symlink(string(f.Data), path)
		} else if err == nil {
			err = os.WriteFile(path, f.Data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// parseTree reads a tree on disk, unable to leave it by a link.
func parseTree(t *testing.T, dir, name string) (Machine, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return ParseSysfs(root.FS(), "recorded:"+name)
}

func runHwloc(t *testing.T, dir string) hwlocTopology {
	t.Helper()
	cmd := exec.Command("lstopo-no-graphics", "-i", dir, "--if", "fsroot", "--of", "xml", "-")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var topo hwlocTopology
	if err := xml.Unmarshal(out, &topo); err != nil {
		t.Fatal(err)
	}
	return topo
}

// compareWithHwloc returns how many facts it compared.
func compareWithHwloc(t *testing.T, m Machine, want recorded, topo hwlocTopology) int {
	t.Helper()
	byType := map[string][]hwlocObject{}
	collect(topo.Objects, byType)
	packages, nodes := len(m.Packages), m.NodeIDs().String()
	if want.differs != "" {
		t.Log("differs:", want.differs)
	}
	if want.hwlocPackages > 0 {
		packages = want.hwlocPackages
	}
	if want.hwlocNodes != "" {
		nodes = want.hwlocNodes
	}
	var theirs set.NodeSet
	for _, n := range byType["NUMANode"] {
		theirs = theirs.With(n.Index)
	}
	if theirs.String() != nodes {
		t.Errorf("hwloc has nodes %v, want %s", theirs, nodes)
	}
	for kind, ours := range map[string]int{"Package": packages, "Core": len(m.Cores), "L2Cache": len(m.L2s), "PU": m.OnlineCPUs().Len()} {
		if len(byType[kind]) != ours {
			t.Errorf("hwloc has %d of type %s, we have %d", len(byType[kind]), kind, ours)
		}
	}
	return 5 + compareNodes(t, m, want, byType["NUMANode"]) + compareDistances(t, m, topo.Distances)
}

func collect(objects []hwlocObject, byType map[string][]hwlocObject) {
	for _, o := range objects {
		byType[o.Type] = append(byType[o.Type], o)
		collect(o.Objects, byType)
	}
}

func compareNodes(t *testing.T, m Machine, want recorded, theirs []hwlocObject) int {
	t.Helper()
	compared := 0
	for _, o := range theirs {
		n, ok := m.Node(o.Index)
		if !ok || int64(n.Memory.Or(-1)) != o.Memory {
			t.Errorf("node %d: hwloc has %d bytes, we have %v", o.Index, o.Memory, n.Memory)
		}
		compared++
		if n.CPUs.IsEmpty() || want.doubt != "" { // hwloc shows a CPU-less node's neighbours
			continue
		}
		cpus, err := set.ParseCPUMask(hwlocMask(o.CPUs))
		if err != nil || !cpus.Equal(n.CPUs) {
			t.Errorf("node %d: hwloc has CPUs %v (%v), we have %v", o.Index, cpus, err, n.CPUs)
		}
		compared++
	}
	return compared
}

// hwlocMask turns "0xff,,0x0" into the kernel's "ff,0,0".
func hwlocMask(s string) string {
	groups := strings.Split(strings.ReplaceAll(s, "0x", ""), ",")
	for i, g := range groups {
		if g == "" {
			groups[i] = "0"
		}
	}
	return strings.Join(groups, ",")
}

func compareDistances(t *testing.T, m Machine, all []hwlocDistances) int {
	t.Helper()
	compared := 0
	for _, d := range all {
		ids := numbers(t, d.Indexes)
		values := numbers(t, d.Values)
		if d.Name != "NUMALatency" || len(values) != len(ids)*len(ids) {
			continue
		}
		for k, theirs := range values {
			from, to := ids[k/len(ids)], ids[k%len(ids)]
			if ours := m.Distance(from, to).Or(-1); ours != theirs {
				t.Errorf("distance %d to %d: hwloc has %d, we have %d", from, to, theirs, ours)
			}
			compared++
		}
	}
	return compared
}

func numbers(t *testing.T, texts []string) (ns []int) {
	t.Helper()
	for _, f := range strings.Fields(strings.Join(texts, " ")) {
		n, err := parseID(f)
		if err != nil {
			t.Fatal(err)
		}
		ns = append(ns, n.Or(-1))
	}
	return ns
}
