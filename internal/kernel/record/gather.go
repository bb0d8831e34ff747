// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/unit"
)

// File is one entry of a Tree. A path that ends in "/" is a directory; Link is
// where a link points to.
type File struct {
	Path string
	Data []byte
	Link string
}

// Tree is a recorded machine: files by path, relative to the root.
type Tree struct{ Files []File }

// Bytes is the size of all files together.
func (t Tree) Bytes() unit.Bytes {
	n := 0
	for _, f := range t.Files {
		n += len(f.Data)
	}
	return unit.Bytes(n)
}

// maxFile bounds one file; the largest, zoneinfo and cpuinfo of a large machine,
// have some 1 MiB.
const maxFile = 8 << 20

// Gather reads the files that the rules name. page is the size of a page if the root
// has no file with it, as on a live host. The error joins what could not be read; the
// tree has the rest.
func Gather(root fs.FS, page unit.Opt[unit.Bytes]) (Tree, error) {
	g := gatherer{root: root, dirs: map[string][]string{}, saved: map[string]bool{}, anon: aliases{}}
	for _, r := range rules {
		g.rule(r)
	}
	g.classLinks()
	g.bridges()
	g.drivers()
	if size, ok := page.Get(); ok && !g.saved[noFilePath] {
		g.add(File{Path: noFilePath, Data: fmt.Appendf(nil, "Architecture: %s\nPageSize: %d\n", machineName(), size)})
	}
	slices.SortFunc(g.tree.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return g.tree, errors.Join(g.errs...)
}

const noFilePath = "proc/hwloc-nofile-info"

// machineName is uname's name of this host: only a live one lacks the file.
func machineName() string {
	if name, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]; ok {
		return name
	}
	return runtime.GOARCH
}

type gatherer struct {
	root  fs.FS
	dirs  map[string][]string // names in directories already listed
	saved map[string]bool
	anon  aliases
	tree  Tree
	errs  []error
}

// add adds a file once, under a path without names of people or hosts.
func (g *gatherer) add(f File) {
	steps := strings.Split(f.Path, "/")
	for i, s := range steps {
		if s != "" && !pciAddress().MatchString(s) && !count().MatchString(s) {
			steps[i] = g.anon.of(s)
		}
	}
	f.Path = strings.Join(steps, "/")
	if !g.saved[f.Path] {
		g.saved[f.Path] = true
		g.tree.Files = append(g.tree.Files, f)
	}
}

func (g *gatherer) failed(err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.errs = append(g.errs, err)
	}
}

func (g *gatherer) rule(r rule) {
	path, isDir := strings.CutSuffix(r.path, "/")
	g.walk(nil, strings.Split(path, "/"), func(path string) {
		if isDir {
			g.add(File{Path: path + "/"})
			return
		}
		g.file(path, r.filter)
	})
}

func (g *gatherer) file(path string, filter filter) {
	data, err := fs.ReadFile(g.root, path)
	if err != nil {
		g.failed(fmt.Errorf("record %s: %w", path, err))
		return
	}
	if len(data) > maxFile {
		g.failed(fmt.Errorf("record %s: %d bytes are more than such a file can have", path, len(data)))
		return
	}
	if text := filter(string(data)); text != "" || len(data) == 0 {
		g.add(File{Path: path, Data: []byte(text)})
	}
}

// walk finds the paths that match the steps of a pattern. A last step without a
// wildcard is not checked: opening it will show whether it exists.
func (g *gatherer) walk(at, steps []string, found func(path string)) {
	if len(steps) == 0 {
		found(strings.Join(at, "/"))
		return
	}
	for _, pattern := range alternatives(steps[0]) {
		if !strings.ContainsAny(pattern, wildcards) {
			g.walk(append(at, pattern), steps[1:], found)
			continue
		}
		for _, name := range g.list(strings.Join(at, "/")) {
			if matches(pattern, name) {
				g.walk(append(at, name), steps[1:], found)
			}
		}
	}
}

func (g *gatherer) list(dir string) []string {
	names, seen := g.dirs[dir]
	if seen {
		return names
	}
	entries, err := fs.ReadDir(g.root, dir)
	if err != nil {
		g.failed(fmt.Errorf("record %s: %w", dir, err))
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	g.dirs[dir] = names
	return names
}

// alternatives makes "a", "b" of "{a,b}".
func alternatives(step string) []string {
	inner, ok := strings.CutPrefix(step, "{")
	if !ok {
		return []string{step}
	}
	return strings.Split(strings.TrimSuffix(inner, "}"), ",")
}

// wildcards end a step: # is a number, * a name or the rest of one, @ a PCI address.
const wildcards = "#*@"

func matches(pattern, name string) bool {
	last := len(pattern) - 1
	rest, ok := strings.CutPrefix(name, pattern[:last])
	if !ok || rest == "" {
		return false
	}
	switch pattern[last] {
	case '#':
		return strings.Trim(rest, "0123456789") == ""
	case '@':
		return pciAddress().MatchString(rest)
	}
	return true
}

var pciAddress = form(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// classLinks saves the PCI device of a name: sys/class/net/eth0 leads to
// …/0000:02:00.0/net/eth0, or, before 2.6.25, its "device" to …/0000:02:00.0.
func (g *gatherer) classLinks() {
	for _, dir := range []string{"sys/class/net", "sys/class/infiniband", "sys/class/block", "sys/class/nvme", "sys/class/drm", "sys/class/accel", "sys/bus/cxl/devices"} {
		for _, name := range g.list(dir) {
			g.classLink(dir+"/"+name, dir, 2)
			g.classLink(dir+"/"+name+"/device", dir+"/"+name, 0)
		}
	}
}

// classLink saves a link as its last PCI address and the steps after it, at most the
// last few: readers need no more of it, and the rest names ports and disks.
func (g *gatherer) classLink(path, dir string, after int) {
	target, err := fs.ReadLink(g.root, path)
	if err != nil {
		return // a directory, a virtual device, or none
	}
	steps := strings.Split(target, "/")
	for i := len(steps) - 1; i >= 0; i-- {
		if !pciAddress().MatchString(steps[i]) {
			continue
		}
		rest := steps[i+1:]
		rest = slices.Clone(rest[max(0, len(rest)-after):])
		for k, s := range rest {
			rest[k] = g.anon.of(s)
		}
		up := strings.Repeat("../", strings.Count(dir, "/")+1)
		g.add(File{Path: path, Link: up + strings.Join(append([]string{strings.TrimSuffix(pci, "/"), steps[i]}, rest...), "/")})
		return
	}
}

// bridges saves the way to each PCI device as folders, which the links of sys/bus/pci would
// lead through: those cannot be saved beside what the device's folder has.
func (g *gatherer) bridges() {
	for _, address := range g.list(strings.TrimSuffix(pci, "/")) {
		target, err := fs.ReadLink(g.root, pci+address)
		if err != nil || !pciAddress().MatchString(address) {
			continue
		}
		way := "sys/devices/pci/"
		for _, step := range strings.Split(target, "/") {
			if pciAddress().MatchString(step) {
				way += step + "/"
			}
		}
		g.add(File{Path: way})
	}
}

// drivers saves which driver has a dax device.
func (g *gatherer) drivers() {
	const dir = "sys/bus/dax/devices"
	for _, name := range g.list(dir) {
		target, err := fs.ReadLink(g.root, dir+"/"+name+"/driver")
		if driver := path.Base(target); err == nil && plain().MatchString(driver) && plain().MatchString(name) {
			g.add(File{Path: dir + "/" + name + "/driver", Link: "../../drivers/" + driver})
		}
	}
}

// count is the name of a folder that the kernel numbers: kfd/topology/nodes/1.
var count = form(`^[0-9]{1,4}$`)

func itoa(n int) string { return strconv.Itoa(n) }
