// SPDX-License-Identifier: Apache-2.0

package kerneltest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	sys "golang.org/x/sys/unix"
)

// Resctrl is a resctrl file system in memory: mkdir makes the files, RMIDs and CLOSIDs run
// out and rest in limbo, tasks belong to one group of each kind, and counters advance as
// tasks move bytes. It does what Documentation/filesystems/resctrl.rst and fs/resctrl say;
// real hardware was never compared with it. NewResctrl makes one of two domains.
type Resctrl struct {
	RMIDs, CLOSIDs int
	Limbo          int // ticks for which a freed RMID cannot be used
	Domains        []int
	Ways           int    // of each L3
	Shareable      uint64 // ways that devices use
	MinBits        int
	Least, Step    uint64 // MB
	MB             uint64 // of the default group: 100 (percent), 2048 (AMD)
	Features       []string
	Words          map[string]string // by file: its text in place of a figure
	// Stale makes the first reading of a group be what is left of its RMID's past.
	Stale bool
	// Before is called before every operation ("read", "dirs", "id", "make", "remove",
	// "write"), After after each one that was done.
	Before func(op, name string) error
	After  func(op, name string)
	Extra  map[string]string // files of info/

	groups map[string]*group
	tasks  map[int]*task
	limbo  []int // when each freed RMID is free again
	now    int
	next   uint64
	status string
}

type group struct {
	id       uint64
	control  bool
	mask     map[string]map[int]uint64 // resource → domain → value
	counts   map[int]*Counts           // by domain
	readOnce map[string]bool
}

// Counts are what a group's tasks did in one domain.
type Counts struct{ Total, Local, LLC uint64 }

type task struct{ control, mon string }

// NewResctrl has 2 domains, 20 ways, MB in percent, 16 RMIDs and 4 CLOSIDs.
func NewResctrl() *Resctrl {
	f := &Resctrl{
		RMIDs: 16, CLOSIDs: 4, Domains: []int{0, 1}, Ways: 20, Shareable: 0xc0000, MinBits: 1, Least: 10, Step: 10, MB: 100,
		Features: []string{"llc_occupancy", "mbm_total_bytes", "mbm_local_bytes"}, Words: map[string]string{},
		groups: map[string]*group{}, tasks: map[int]*task{}, Extra: map[string]string{},
	}
	f.groups[""] = f.newGroup(true)
	return f
}

func (f *Resctrl) newGroup(control bool) *group {
	f.next++
	g := &group{id: f.next, control: control, counts: map[int]*Counts{}, readOnce: map[string]bool{}, mask: map[string]map[int]uint64{"L3": {}, "MB": {}}}
	for _, d := range f.Domains {
		g.counts[d] = &Counts{}
		g.mask["L3"][d], g.mask["MB"][d] = 1<<f.Ways-1, f.MB
	}
	return g
}

// Start makes tasks in the default group.
func (f *Resctrl) Start(tids ...int) {
	for _, tid := range tids {
		f.tasks[tid] = &task{}
	}
}

// Fork makes a task in its parent's group.
func (f *Resctrl) Fork(parent, child int) { t := *f.tasks[parent]; f.tasks[child] = &t }

// End ends a task.
func (f *Resctrl) End(tid int) { delete(f.tasks, tid) }

// Tick advances time: RMIDs leave limbo.
func (f *Resctrl) Tick() {
	f.now++
	f.limbo = slices.DeleteFunc(f.limbo, func(at int) bool { return at <= f.now })
}

// Moves makes a task move bytes in a domain.
func (f *Resctrl) Moves(tid, domain int, total, local uint64) {
	t := f.tasks[tid]
	g := f.groups[t.mon]
	if t.mon == "" {
		g = f.groups[t.control]
	}
	c := g.counts[domain]
	c.Total, c.Local, c.LLC = c.Total+total, c.Local+local, total/100
}

// Group is the group of a task: the path of its innermost group.
func (f *Resctrl) Group(tid int) string {
	t := f.tasks[tid]
	if t.mon != "" {
		return t.mon
	}
	return t.control
}

// Groups are the paths of all but the default one.
func (f *Resctrl) Groups() []string {
	all := slices.Sorted(maps.Keys(f.groups))
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// Counts is the count of a group's own RMID, to be changed.
func (f *Resctrl) Counts(name string, domain int) *Counts { return f.groups[name].counts[domain] }

func (f *Resctrl) before(op, name string) error {
	if f.Before == nil {
		return nil
	}
	if err := f.Before(op, name); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

func (f *Resctrl) done(op, name string) error {
	f.status = "ok"
	if f.After != nil {
		f.After(op, name)
	}
	return nil
}

func (f *Resctrl) fail(op, name string, errno sys.Errno, why string) error {
	f.status = why
	return &fs.PathError{Op: op, Path: name, Err: errno}
}

// ID is a group's inode.
func (f *Resctrl) ID(dir string) (uint64, error) {
	if err := f.before("id", dir); err != nil {
		return 0, err
	}
	g, ok := f.groups[dir]
	if !ok {
		return 0, f.fail("stat", dir, sys.ENOENT, "")
	}
	return g.id, nil
}

// Dirs lists directories.
func (f *Resctrl) Dirs(dir string) (names []string, err error) {
	if err := f.before("dirs", dir); err != nil {
		return nil, err
	}
	base := path.Base(dir)
	switch {
	case dir == "info":
		return []string{"L3", "L3_MON", "MB"}, nil
	case base == "mon_data":
		for _, d := range f.Domains {
			names = append(names, fmt.Sprintf("mon_L3_%02d", d))
		}
		return names, nil
	case strings.HasPrefix(base, "mon_L3_"):
		return nil, nil
	case dir == "":
		names = []string{"info", "mon_data", "mon_groups"}
	case base != "mon_groups" && f.groups[dir] == nil:
		return nil, f.fail("open", dir, sys.ENOENT, "")
	}
	for g := range f.groups {
		if g != "" && path.Dir("/"+g) == path.Join("/", dir) {
			names = append(names, path.Base(g))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Make is mkdir(2).
func (f *Resctrl) Make(dir string) error {
	if err := f.before("make", dir); err != nil {
		return err
	}
	parent, name := path.Split(dir)
	mon := path.Base(parent) == "mon_groups"
	above := strings.Trim(strings.TrimSuffix(parent, "mon_groups/"), "/")
	switch {
	case f.groups[dir] != nil:
		return f.fail("mkdir", dir, sys.EEXIST, "")
	case mon && (f.groups[above] == nil || !f.groups[above].control):
		return f.fail("mkdir", dir, sys.ENOENT, "")
	case name == "" || !mon && parent != "":
		return f.fail("mkdir", dir, sys.EPERM, "")
	case len(f.groups)+len(f.limbo) >= f.RMIDs && len(f.limbo) > 0:
		return f.fail("mkdir", dir, sys.EBUSY, "Out of RMIDs")
	case len(f.groups) >= f.RMIDs:
		return f.fail("mkdir", dir, sys.ENOSPC, "Out of RMIDs")
	case !mon && f.controls() >= f.CLOSIDs: // after the RMID, which mkdir_rdt_prepare() takes
		return f.fail("mkdir", dir, sys.ENOSPC, "Out of CLOSIDs")
	}
	f.groups[dir] = f.newGroup(!mon)
	return f.done("make", dir)
}

func (f *Resctrl) controls() (n int) {
	for _, g := range f.groups {
		if g.control {
			n++
		}
	}
	return n
}

// Remove is rmdir(2): tasks fall back to the group above.
func (f *Resctrl) Remove(dir string) error {
	if err := f.before("remove", dir); err != nil {
		return err
	}
	switch base := path.Base(dir); {
	case dir == "" || base == "info" || base == "mon_groups" || base == "mon_data":
		return f.fail("rmdir", dir, sys.EPERM, "")
	case f.groups[dir] == nil:
		return f.fail("rmdir", dir, sys.ENOENT, "")
	}
	for name := range f.groups {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			delete(f.groups, name)
			if f.Limbo > 0 {
				f.limbo = append(f.limbo, f.now+f.Limbo)
			}
		}
	}
	for _, t := range f.tasks {
		if t.control == dir {
			t.control = ""
		}
		if t.mon == dir || strings.HasPrefix(t.mon, dir+"/") {
			t.mon = ""
		}
	}
	return f.done("remove", dir)
}

// Write is a write to tasks or schemata.
func (f *Resctrl) Write(file, text string) error {
	if err := f.before("write", file); err != nil {
		return err
	}
	dir, name := path.Split(file)
	dir = strings.TrimSuffix(dir, "/")
	g := f.groups[dir]
	var err error
	switch {
	case g == nil:
		err = f.fail("open", file, sys.ENOENT, "")
	case name == "tasks":
		err = f.writeTask(dir, g, text)
	case name == "schemata" && g.control:
		err = f.writeSchemata(g, text)
	default:
		err = f.fail("open", file, sys.ENOENT, "")
	}
	if err != nil {
		return err
	}
	return f.done("write", file)
}

func (f *Resctrl) writeTask(dir string, g *group, text string) error {
	tid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return f.fail("write", dir, sys.EINVAL, "Task list parsing error")
	}
	t := f.tasks[tid]
	if t == nil {
		return f.fail("write", dir, sys.ESRCH, "No task "+text)
	}
	if g.control {
		t.control, t.mon = dir, ""
		return nil
	}
	if parent := strings.TrimSuffix(path.Dir(path.Dir("/"+dir)), "/"); t.control != strings.TrimPrefix(parent, "/") {
		return f.fail("write", dir, sys.EINVAL, "Can't move task to different control group")
	}
	t.mon = dir
	return nil
}

// writeSchemata parses all lines first and then applies them, as the kernel does.
func (f *Resctrl) writeSchemata(g *group, text string) error {
	type set struct {
		resource string
		domain   int
		value    uint64
	}
	var sets []set
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		name, rest, _ := strings.Cut(line, ":")
		if g.mask[name] == nil {
			return f.fail("write", "schemata", sys.EINVAL, "Unknown or unsupported resource name '"+name+"'")
		}
		for _, part := range strings.Split(rest, ";") {
			id, value, _ := strings.Cut(part, "=")
			d, err := strconv.Atoi(id)
			if err != nil {
				return f.fail("write", "schemata", sys.EINVAL, "Missing '=' or non-numeric domain")
			}
			if !slices.Contains(f.Domains, d) {
				return f.fail("write", "schemata", sys.EINVAL, "")
			}
			v, err := f.valid(name, value)
			if err != nil {
				return f.fail("write", "schemata", sys.EINVAL, err.Error())
			}
			sets = append(sets, set{name, d, v})
		}
	}
	for _, s := range sets {
		g.mask[s.resource][s.domain] = s.value
	}
	return nil
}

func (f *Resctrl) valid(name, text string) (uint64, error) {
	base, bad := 16, "Non-hex character in the mask "
	if name == "MB" {
		base, bad = 10, "Non-decimal digit in MB value "
	}
	v, err := strconv.ParseUint(text, base, 64)
	if err != nil {
		return 0, errors.New(bad + text)
	}
	if name == "MB" {
		if f.MB == 100 && (v < f.Least || v > 100) || v < f.Least {
			return 0, fmt.Errorf("MB value %d out of range [%d,%d]", v, f.Least, f.MB)
		}
		return (v + f.Step - 1) / f.Step * f.Step, nil
	}
	low := 0
	for v>>low&1 == 0 && low < 64 {
		low++
	}
	run := v >> low
	switch {
	case v == 0 || v>>f.Ways != 0:
		return 0, fmt.Errorf("Mask out of range")
	case run&(run+1) != 0:
		return 0, fmt.Errorf("The mask %x has non-consecutive 1-bits", v)
	case len(strconv.FormatUint(run, 2)) < f.MinBits:
		return 0, fmt.Errorf("Need at least %d bits in the mask", f.MinBits)
	}
	return v, nil
}

// Read reads a file.
func (f *Resctrl) Read(file string) ([]byte, error) {
	if err := f.before("read", file); err != nil {
		return nil, err
	}
	if text, ok := f.info(file); ok {
		return []byte(text + "\n"), nil
	}
	dir, name := path.Split(file)
	dir = strings.TrimSuffix(dir, "/")
	if g := f.groups[dir]; g != nil && name == "tasks" {
		return []byte(f.tasksOf(dir, g)), nil
	} else if g != nil && g.control && name == "schemata" {
		return []byte(f.schemata(g)), nil
	}
	if at := strings.Index("/"+dir, "/mon_data/mon_L3_"); at >= 0 {
		owner := strings.TrimPrefix(("/" + dir)[:at], "/")
		domain, err := strconv.Atoi(dir[strings.LastIndex(dir, "_")+1:])
		if g := f.groups[owner]; g != nil && err == nil {
			return []byte(f.count(owner, g, domain, name) + "\n"), nil
		}
	}
	return nil, f.fail("open", file, sys.ENOENT, "")
}

func (f *Resctrl) info(file string) (string, bool) {
	if text, ok := f.Extra[file]; ok {
		return text, true
	}
	text, ok := map[string]string{
		"info/last_cmd_status":                cmp.Or(f.status, "ok"),
		"info/L3/num_closids":                 strconv.Itoa(f.CLOSIDs),
		"info/L3/cbm_mask":                    strconv.FormatUint(1<<f.Ways-1, 16),
		"info/L3/min_cbm_bits":                strconv.Itoa(f.MinBits),
		"info/L3/shareable_bits":              strconv.FormatUint(f.Shareable, 16),
		"info/L3_MON/num_rmids":               strconv.Itoa(f.RMIDs),
		"info/L3_MON/mon_features":            strings.Join(f.Features, "\n"),
		"info/L3_MON/max_threshold_occupancy": "65536",
		"info/MB/num_closids":                 strconv.Itoa(f.CLOSIDs),
		"info/MB/min_bandwidth":               strconv.FormatUint(f.Least, 10),
		"info/MB/bandwidth_gran":              strconv.FormatUint(f.Step, 10),
	}[file]
	return text, ok
}

func (f *Resctrl) tasksOf(dir string, g *group) string {
	var out strings.Builder
	for _, tid := range slices.Sorted(maps.Keys(f.tasks)) {
		if t := f.tasks[tid]; g.control && t.control == dir || !g.control && t.mon == dir {
			fmt.Fprintln(&out, tid)
		}
	}
	return out.String()
}

func (f *Resctrl) schemata(g *group) string {
	var out strings.Builder
	for _, r := range []struct{ name, format string }{{"MB", "%d=%4d"}, {"L3", "%d=%05x"}} {
		var parts []string
		for _, d := range f.Domains {
			parts = append(parts, fmt.Sprintf(r.format, d, g.mask[r.name][d]))
		}
		fmt.Fprintf(&out, "%6s:%s\n", r.name, strings.Join(parts, ";"))
	}
	return out.String()
}

func (f *Resctrl) count(dir string, g *group, domain int, file string) string {
	if word := f.Words[file]; word != "" {
		return word
	}
	sum := *g.counts[domain]
	for name, mon := range f.groups {
		if g.control && !mon.control && path.Dir(path.Dir("/"+name)) == "/"+dir {
			c := mon.counts[domain]
			sum.Total, sum.Local, sum.LLC = sum.Total+c.Total, sum.Local+c.Local, sum.LLC+c.LLC
		}
	}
	key := fmt.Sprint(domain, file)
	if f.Stale && !g.readOnce[key] {
		g.readOnce[key] = true
		return "1099511627776"
	}
	return strconv.FormatUint(map[string]uint64{"llc_occupancy": sum.LLC, "mbm_total_bytes": sum.Total, "mbm_local_bytes": sum.Local}[file], 10)
}
