// SPDX-License-Identifier: Apache-2.0

package record

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/unit"
)

// full is a tree with some of everything that a machine is read from, and much that
// must not be saved.
func full() fstest.MapFS {
	tree := fstest.MapFS{}
	for path, text := range kerneltest.TwoNodes() {
		tree[strings.TrimPrefix(path, "/")] = &fstest.MapFile{Data: []byte(text)}
	}
	put := func(path, text string) { tree[path] = &fstest.MapFile{Data: []byte(text)} }
	link := func(path, to string) { tree[path] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink} }
	for i := range 4 {
		c := fmt.Sprintf(cpu+"cpu%d/", i)
		put(c+"topology/package_cpus_list", []string{"0-1\n", "2-3\n"}[i/2])
		put(c+"topology/core_cpus_list", fmt.Sprintln(i))
		put(c+"topology/die_id", "0\n")
		put(c+"topology/die_cpus_list", []string{"0-1\n", "2-3\n"}[i/2])
		put(c+"cache/index2/level", "2\n")
		put(c+"cache/index2/type", "Unified\n")
		put(c+"cache/index2/id", fmt.Sprintln(i))
		put(c+"cache/index2/size", "1024K\n")
		put(c+"cache/index2/shared_cpu_map", fmt.Sprintf("%x\n\x00\x00", 1<<i))
	}
	put(node+"node0/access0/initiators/read_latency", "26\n")
	put(node+"node0/access0/initiators/read_bandwidth", "131072\n")
	link(node+"node0/access0/initiators/node1", "../../../node1")
	put(node+"node1/memory_side_cache/index1/size", "103079215104\n")
	put("sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0-1\n")
	for address, class := range map[string]string{"0000:3b:00.0": "0x020000", "0000:5e:00.0": "0x010802", "0000:00:1f.2": "0x010601", "10000:01:00.0": "0x030200"} {
		put(pci+address+"/class", class+"\n")
		put(pci+address+"/vendor", "0x8086\n")
		put(pci+address+"/device", "0x1521\n")
		put(pci+address+"/numa_node", "1\n")
		put(pci+address+"/local_cpulist", "2-3\n")
	}
	link("sys/class/net/eth0", "../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/net/eth0")
	link("sys/class/block/sda", "../../devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda")
	link("sys/class/block/sda1", "../../devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda/sda1")
	link("sys/class/drm/card1/device", "../../../10000:01:00.0")
	put(pci+"0000:5e:00.0/nvme/nvme0/nvme0n1/size", "1\n")
	put("proc/meminfo", "MemTotal:  1048576 kB\nActive(anon): 5 kB\n")
	put("proc/cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 21\n\nprocessor\t: 1\nvendor_id\t: AuthenticAMD\ncpu family\t: 21\n")
	put("proc/hwloc-nofile-info", "HostName: SECRET-host\nArchitecture: x86_64\nPageSize: 65536\n")
	return tree
}

// roundTrip checks that the tree, its archive and its folder give the machine that was
// recorded.
func roundTrip(t *testing.T, source fs.FS) Tree {
	t.Helper()
	want, wantErr := machine.ParseSysfs(source, "x")
	saved, err := Gather(source, unit.None[unit.Bytes]())
	if err != nil {
		t.Error(err)
	}
	var packed bytes.Buffer
	if err := saved.Write(&packed); err != nil {
		t.Fatal(err)
	}
	read, err := Read(&packed)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "saved")
	if err := saved.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	folder, err := unix.At(dir).FS()
	if err != nil {
		t.Fatal(err)
	}
	for how, tree := range map[string]fs.FS{"tree": saved.FS(), "archive": read.FS(), "folder": folder} {
		got, gotErr := machine.ParseSysfs(tree, "x")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, want\n%+v", how, got, want)
		}
		if (gotErr == nil) != (wantErr == nil) || gotErr != nil && strings.Count(gotErr.Error(), "\n") != strings.Count(wantErr.Error(), "\n") {
			t.Errorf("%s: %v, want %v", how, gotErr, wantErr)
		}
	}
	return saved
}

func TestRoundTrip(t *testing.T) {
	source := full()
	saved := roundTrip(t, source)
	m, err := machine.ParseSysfs(saved.FS(), "x")
	if err != nil || len(m.Devices) != 4 || m.PageSize != unit.Some(64*unit.KiB) || len(m.Nodes[0].Access) != 1 || len(m.Nodes[1].SideCaches) != 1 || !m.Nodes[0].Tier.Known() {
		t.Errorf("little was compared: %+v, %v", m, err)
	}
	if names := m.Devices[0].Names; !slices.Equal(names, []string{"sda"}) {
		t.Errorf("the disk is called %v", names)
	}
	roundTrip(t, fstest.MapFS{cpu + "cpu0/topology/core_id": {Data: []byte("0")}})
}

// A malformed machine is still malformed, in the same places.
func TestRoundTripOfMalformed(t *testing.T) {
	for path, text := range map[string]string{
		node + "node0/distance": "10 x\n", node + "node1/cpulist": "2-\x00\x013,boom\n", cpu + "cpu0/cache/index2/size": "big\n",
		node + "node1/meminfo": "Node 1 MemTotal: lots kB\n", cpu + "cpu0/cache/index2/type": "Crowded\n", "proc/hwloc-nofile-info": "PageSize: 3\n",
	} {
		source := full()
		source[path] = &fstest.MapFile{Data: []byte(text)}
		if _, err := machine.ParseSysfs(source, "x"); err == nil {
			t.Errorf("%s: %q is fine", path, text)
		}
		saved := roundTrip(t, source)
		for _, f := range saved.Files {
			if f.Path == path && bytes.ContainsAny(f.Data, "\x01") || bytes.Contains(f.Data, []byte("boom")) {
				t.Errorf("%s: %q was saved", path, f.Data)
			}
		}
	}
}

// secrets are what a machine's files can reveal of its owner.
var secrets = []string{"SECRET", "0123456789ab", "01:23:45:67:89:ab", "jolly"}

func TestNothingLeaks(t *testing.T) {
	source := full()
	put := func(path, text string) { source[path] = &fstest.MapFile{Data: []byte(text)} }
	link := func(path, to string) { source[path] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink} }
	for _, path := range []string{
		"sys/class/dmi/id/product_serial", "sys/devices/virtual/dmi/id/board_serial", node + "node0/serial", node + "node0/SECRET", cpu + "cpu0/SECRET",
		pci + "0000:3b:00.0/net/eth0/address", pci + "0000:3b:00.0/serial_number", pci + "0000:3b:00.0/vpd", pci + "0000:5e:00.0/nvme/nvme0/serial",
		"proc/cmdline", "proc/version", "proc/sys/kernel/hostname", "etc/hostname", "proc/device-tree/serial-number", "proc/1/cmdline", cpu + "microcode/SECRET",
		"sys/firmware/SECRET", pci + "SECRET/class", "sys/class/net/eth0x/address", "sys/devices/system/memory/SECRET", "README",
	} {
		put(path, "SECRET-0123456789ab\n01:23:45:67:89:ab jolly\n")
	}
	put("proc/cpuinfo", "processor : 0\nvendor_id : GenuineIntel\nSerial\t\t: SECRET00\nmachine : SECRET\nprocessor 0: version = FF, identification = SECRET\nHardware : SECRET\n\njolly\n")
	put("proc/sys/kernel/osrelease", "6.1.0-jolly-SECRET\n")
	put(node+"node1/cpulist", "2-3,SECRET\n")
	put(node+"node1/meminfo", "Node 1 MemTotal: 524288 kB\nNode 1 SECRET-0123456789ab: 5 SECRET123\n")
	put("proc/zoneinfo", "Node 0, zone DMA\n  SECRET-0123456789ab 4\n")
	put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] SECRET\n")
	link("sys/class/net/enx0123456789ab", "../../devices/pci0000:3a/SECRET/0000:3b:00.0/net/enx0123456789ab")
	link("sys/class/net/jolly", "../../devices/virtual/net/jolly")
	link("sys/class/infiniband/ibx0123456789abcdef", "../../devices/pci0000:3a/0000:3b:00.0/infiniband/ibx0123456789abcdef")
	put(pci+"0000:3b:00.0/net/wlx0123456789ab/mtu", "1500")
	saved, err := Gather(source, unit.None[unit.Bytes]())
	if err != nil || len(saved.Files) < 50 {
		t.Fatalf("%d files, %v", len(saved.Files), err)
	}
	var packed bytes.Buffer
	if err := saved.Write(&packed); err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		if at := bytes.Index(bytes.ToLower(all), []byte(strings.ToLower(secret))); at >= 0 {
			t.Errorf("%s was saved: %q", secret, all[max(0, at-200):at+20])
		}
	}
	m, err := machine.ParseSysfs(saved.FS(), "x")
	if names := m.Devices[1].Names; err == nil || len(names) != 3 || !strings.HasPrefix(names[0], "anon") || names[2] != "eth0" {
		t.Errorf("names %v, %v", names, err)
	}
}

func TestDecodeFilters(t *testing.T) {
	for _, c := range []struct {
		filter   filter
		in, want string
	}{
		{numbers, "0-3,8 00000000,ff 32K 0x020000 -1\n\x00", "0-3,8 00000000,ff 32K 0x020000 -1\n\x00"},
		{numbers, "10 x 1.5 0123456789abcdef012345", "10 ? ? ?"},
		{numbers, "0-31:2/8", "0-31:2/8"},
		{counters, "Node 0 Active(anon):  5 kB\nDirectMap2M: 7 kB\nprotection: (0, 17, 0)\n", "Node 0 Active(anon):  5 kB\nDirectMap2M: 7 kB\nprotection: (0, 17, 0)\n"},
		{counters, "Serial: AB123456 XY-9x9-1234", "Serial: ? ?"},
		{words, "always [madvise] never 1 mine", "always [madvise] never 1 ?"},
		{version, "6.1.0-13-amd64-berlin\n", "6.1.0\n"},
		{version, "berlin", "\n"},
		{noFile, "HostName: x\nPageSize: 4096\nArchitecture: x86_64\n", "PageSize: 4096\nArchitecture: x86_64\n"},
		{cpuinfo, "processor\t: 0\nSerial\t: 1\n\n", "processor\t: 0\n\n"},
	} {
		if got := c.filter(c.in); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	saved, err := Gather(full(), unit.None[unit.Bytes]())
	if err != nil {
		t.Fatal(err)
	}
	archive, folder, foreign := filepath.Join(dir, "m.tar.gz"), filepath.Join(dir, "m"), filepath.Join(dir, "foreign")
	if err := errors.Join(os.Mkdir(foreign, 0o755), os.WriteFile(filepath.Join(foreign, "mine"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{archive, folder} {
		if err := saved.Save(out, false); err != nil {
			t.Error(err)
		}
		if err := saved.Save(out, false); !errors.Is(err, ErrExists) {
			t.Errorf("%s was overwritten: %v", out, err)
		}
		if err := saved.Save(out, true); err != nil {
			t.Error(err)
		}
	}
	if err := saved.Save(foreign, true); !errors.Is(err, ErrExists) {
		t.Errorf("a user's folder was replaced: %v", err)
	}
	if err := saved.Save(filepath.Join(dir, "none/m.tar.gz"), false); err == nil {
		t.Error("saved to where there is no folder")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	again, err := Load(archive)
	if err != nil || !reflect.DeepEqual(again, saved) {
		t.Errorf("%d files, %v; want %d", len(again.Files), err, len(saved.Files))
	}
}

// pack makes an archive of these entries.
func pack(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, h := range entries {
		err := w.WriteHeader(&h)
		if err == nil && h.Typeflag == tar.TypeReg {
			_, err = w.Write(make([]byte, h.Size))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadRefuses(t *testing.T) {
	ok := tar.Header{Name: Top + "/proc/meminfo", Typeflag: tar.TypeReg, Mode: 0o644, Size: 3}
	good := pack(t, ok)
	for what, data := range map[string][]byte{
		"nothing":       {},
		"no gzip":       []byte("BZh91AY&SY"),
		"no tar":        gzipped(t, "hello"),
		"empty":         pack(t),
		"foreign":       pack(t, tar.Header{Name: "machine/sys/x", Typeflag: tar.TypeReg}),
		"way out":       pack(t, tar.Header{Name: Top + "/../x", Typeflag: tar.TypeReg}),
		"absolute":      pack(t, tar.Header{Name: "/etc/passwd", Typeflag: tar.TypeReg}),
		"device":        pack(t, tar.Header{Name: Top + "/x", Typeflag: tar.TypeChar}),
		"hard link":     pack(t, tar.Header{Name: Top + "/x", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}),
		"a large one":   pack(t, tar.Header{Name: Top + "/x", Typeflag: tar.TypeReg, Size: maxFile + 1}),
		"cut":           good[:len(good)-12],
		"cut in middle": good[:len(good)/2],
	} {
		if tree, err := Read(bytes.NewReader(data)); err == nil || len(tree.Files) > 0 {
			t.Errorf("%s: %d files, %v", what, len(tree.Files), err)
		}
	}
	if tree, err := Read(bytes.NewReader(good)); err != nil || len(tree.Files) != 1 {
		t.Errorf("%+v, %v", tree, err)
	}
}

func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A decompression bomb ends at the limit.
func TestReadBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("unpacks 256 MiB")
	}
	h := tar.Header{Name: Top + "/x", Typeflag: tar.TypeReg, Mode: 0o644, Size: maxFile}
	bomb := pack(t, slices.Repeat([]tar.Header{h}, maxBytes/maxFile+1)...)
	if tree, err := Read(bytes.NewReader(bomb)); err == nil || !strings.Contains(err.Error(), "MiB") || len(tree.Files) > 0 {
		t.Errorf("%d bytes became %d files, %v", len(bomb), len(tree.Files), err)
	}
}

func TestTreeFS(t *testing.T) {
	saved, err := Gather(full(), unit.None[unit.Bytes]())
	if err != nil {
		t.Fatal(err)
	}
	saved.Files = slices.DeleteFunc(saved.Files, func(f File) bool { return f.Link != "" }) // TestFS opens every file
	if err := fstest.TestFS(saved.FS(), "proc/meminfo", node+"node0/cpulist", cpu+"cpu0"); err != nil {
		t.Error(err)
	}
	odd := Tree{[]File{{Path: "a"}, {Path: "a/b"}, {Path: "c/"}, {Path: "c"}, {Path: "c/"}, {Path: "./"}, {Path: "d/e/f"}, {Path: "d/"}, {Path: ""}}}
	if err := fstest.TestFS(odd.FS(), "a", "c", "d/e/f"); err != nil {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(pack(f, tar.Header{Name: Top + "/proc/meminfo", Typeflag: tar.TypeReg, Size: 3}))
	f.Add([]byte("BZh91AY&SY"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := Read(bytes.NewReader(data))
		if err != nil && len(tree.Files) > 0 {
			t.Fatalf("error and %d files", len(tree.Files))
		}
		if err == nil {
			machine.ParseSysfs(tree.FS(), "x")
		}
	})
}

func FuzzFilters(f *testing.F) {
	f.Add("Node 0 MemTotal: 5 kB\n0-3,8\x00")
	f.Fuzz(func(t *testing.T, text string) {
		for _, filter := range []filter{numbers, counters, words, version, cpuinfo, noFile} {
			once := filter(text)
			if again := filter(once); again != once {
				t.Fatalf("%q became %q, then %q", text, once, again)
			}
		}
	})
}
