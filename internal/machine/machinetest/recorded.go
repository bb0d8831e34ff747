// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"archive/tar"
	"bytes"
	"compress/bzip2"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// wanted are the files that we or hwloc read, of lists and masks the mask. The
// rest of an archive (memory blocks, power, DMI) is most of it.
var wanted = regexp.MustCompile(`^(proc/[^/]+|proc/self/[^/]+|proc/driver/nvidia/.*|sys/fs/cgroup/.*|cgroup/.*|dev/cpuset/.*|` +
	`sys/devices/cpu_[a-z]+/cpus|sys/kernel/mm/hugepages/.*|sys/bus/(dax|cxl)/.*|sys/devices/.*/(dax|mem)[0-9.]+/((ram|pmem)/size|size|target_node|driver)|` +
	`sys/bus/pci/devices/[^/]+|sys/class/(net|block|infiniband|nvme|drm)/[^/]+|sys/devices/virtual/memory_tiering/.*|` +
	`sys/devices/pci.*/(class|vendor|device|numa_node|local_cpu.*|config|revision|subsystem_.*)|` +
	`sys/devices/system/(cpu|node)/([a-z_]+|cpu\d+/(online|cpu_capacity|node\d+|topology/[a-z_]+_(id|cpus|siblings)|cache/index\d+/(level|type|size|id|shared_cpu_map))|` +
	`node\d+/(cpulist|cpumap|distance|meminfo|access.*|memory_side_cache/.*|hugepages/.*)))$`)

// Unpack reads an archive into memory, rooted at the machine's "/", however deep in
// the archive that is.
func Unpack(t testing.TB, path string) fstest.MapFS {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := fstest.MapFS{}
	for tr := tar.NewReader(decompress(t, f)); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		extract(t, files, h, tr)
	}
	if len(files) == 0 {
		t.Fatal("no sys/devices/system in the archive")
	}
	return files
}

func decompress(t testing.TB, f *os.File) io.Reader {
	t.Helper()
	if !strings.HasSuffix(f.Name(), ".xz") {
		return bzip2.NewReader(f)
	}
	if _, err := exec.LookPath("xz"); err != nil {
		t.Skip("the archive is .xz and there is no xz program")
	}
	cmd := exec.Command("xz", "-dc")
	cmd.Stdin = f
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(out)
}

func extract(t testing.TB, files fstest.MapFS, h *tar.Header, r io.Reader) {
	t.Helper()
	_, name, _ := strings.Cut(path.Clean(h.Name), "/") // the archive's own folder
	name = strings.TrimPrefix(name, "fsroot/")
	if !wanted.MatchString(name) {
		return
	}
	switch h.Typeflag {
	case tar.TypeSymlink:
		files[name] = &fstest.MapFile{Data: []byte(h.Linkname), Mode: fs.ModeSymlink | 0o777}
	case tar.TypeReg:
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: data, Mode: 0o644}
	}
}

// Dir is ../shared/machines beside the repository. Where there is none, the test is
// skipped; with CI=true it fails.
func Dir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(Root(t), "../shared/machines")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI must have the recorded machines: %v", err)
		}
		t.Skipf("no recorded machines: %v", err)
	}
	return dir
}

// Root is the repository, above the folder that the test runs in.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the test")
	return ""
}
