// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	sys "golang.org/x/sys/unix"

	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
)

// Read reads a property. A unit that was made at run time is identified by its file,
// which is made anew with it. Any other unit keeps what was set for it whether it runs or
// not, and always has the same ID.
func (a *Applier) Read(s journal.Setting) (journal.Current, error) {
	name, err := unitOf(s)
	if err != nil {
		return journal.Current{}, err
	}
	u, err := a.load(context.Background(), "read "+s.File+" of", name)
	if err != nil {
		return journal.Current{}, err
	}
	value, err := u.value(s.File)
	if err != nil {
		return journal.Current{}, fmt.Errorf("read %s: %w", s, err)
	}
	id, err := a.id(u)
	if err != nil {
		return journal.Current{}, fmt.Errorf("read %s: %w", s, err)
	}
	a.seen[s] = id
	return journal.Current{Value: value, ID: id}, nil
}

func (a *Applier) id(u unitState) (uint64, error) {
	if !u.Transient {
		return 1, nil
	}
	if u.Fragment == "" {
		return 0, fmt.Errorf("systemd says that it was made at run time, by no file (%w)", kernel.ErrMalformed)
	}
	id, err := unix.Inode(a.layout.Root.Path(u.Fragment))
	return id, unix.Explain("read", u.Fragment, "", err)
}

// anew reports that another unit has the name of the one that was read last.
func (a *Applier) anew(s journal.Setting, u unitState) bool {
	seen, ok := a.seen[s]
	id, err := a.id(u)
	return ok && err == nil && id != seen
}

func (u unitState) value(property string) (string, error) {
	if property == Mems {
		return Decode(property, u.Mems)
	}
	return Decode(property, u.CPUs)
}

// Same compares sets. systemd stores the requested value, whatever CPUs are online. A
// kill between Write's two requests leaves everything, which equals unset.
func (a *Applier) Same(s journal.Setting, current, recorded string) bool {
	return same(s.File, current, recorded) || recorded == "" && a.restrictsNothing(s.File, current)
}

// Write sets a property. Unsetting one takes two requests. systemd writes nothing to the
// cgroup for an unset property, and the kernel refuses an empty set while there are
// processes, so the last value would stay in force until the unit's next start. Write
// therefore first asks for everything there can be, which restricts nothing.
func (a *Applier) Write(p journal.Permit, s journal.Setting, value string) error {
	if !p.Valid() {
		return fmt.Errorf("set %s: %w: the journal gave no permit", s, journal.ErrRefused)
	}
	name, err := unitOf(s)
	if err != nil {
		return err
	}
	if value != "" {
		_, err := a.write(name, s, value)
		return err
	}
	all, err := a.everything(s.File)
	if err != nil {
		return err
	}
	if _, err := a.write(name, s, all); err != nil {
		return err
	}
	u, err := a.write(name, s, "")
	if err == nil {
		err = a.tidy(name, s.File, u)
	}
	return err
}

// write sets a property:
//
//  1. Ask. systemd answers before it writes to the cgroup.
//  2. Ask for the present value: that answer comes after the write. A unit that was made
//     anew since the read is another one.
//  3. Does the cgroup have it? If the kernel refused it, systemd only logs that.
func (a *Applier) write(name string, s journal.Setting, value string) (u unitState, err error) {
	what := fmt.Sprintf("%s to %q", s, value)
	mask, err := encode(s.File, value)
	if err != nil {
		return u, fmt.Errorf("set %s: %w: %w", what, journal.ErrRefused, err)
	}
	if err := a.ask(name, s.File, mask); err != nil { // (1)
		return u, explain("set", what, err)
	}
	u, err = a.load(context.Background(), "look at", name) // (2)
	if errors.Is(err, kernel.ErrGone) {
		return u, err
	} else if err != nil {
		return u, fmt.Errorf("%w (%w)", err, journal.ErrUnsure)
	}
	if a.anew(s, u) { // it has our value only because of its name, and is on no record
		err := a.ask(name, s.File, nil)
		return u, fmt.Errorf("set %s: the unit was made anew meanwhile, and is released again (%w)", what, errors.Join(kernel.ErrGone, err))
	}
	if now, err := u.value(s.File); err != nil || !same(s.File, now, value) {
		return u, fmt.Errorf("set %s: systemd says that it is %q (%w)", what, now, errors.Join(journal.ErrUnsure, err))
	}
	if other := a.notInForce(u, s.File, value); other != "" { // (3)
		return u, fmt.Errorf("set %s: systemd has taken it, but %s (%w)", what, other, journal.ErrUnsure)
	}
	return u, nil
}

// everything is all CPUs or nodes that this kernel may ever have.
func (a *Applier) everything(property string) (string, error) {
	file := "/sys/devices/system/cpu/possible"
	if property == Mems {
		file = "/sys/devices/system/node/possible"
	}
	var buf unix.Buffer
	data, err := buf.ReadFile(a.layout.Root.Path(file))
	if err != nil {
		return "", unix.Explain("read", file, "", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// restrictsNothing reports that a property is unset, or has everything.
func (a *Applier) restrictsNothing(property, value string) bool {
	if value == "" {
		return true
	}
	all, err := a.everything(property)
	return err == nil && same(property, value, all)
}

// ask sets a property. Without an answer the result is unknown.
func (a *Applier) ask(name, property string, mask []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.Limit)
	defer cancel()
	err := a.bus.Set(ctx, name, property, mask)
	if answered(err) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, journal.ErrUnsure)
}

// dropIn is where systemd stores what was set at run time (unit_drop_in_dir in its
// core/unit.c). For a unit that was made at run time it is beside the unit's file.
func dropIn(name, property string, transient bool) string {
	dir := "/run/systemd/system.control"
	if transient {
		dir = "/run/systemd/transient"
	}
	return filepath.Join(dir, name+".d", "50-"+property+".conf")
}

// tidy empties the file that tells systemd that a property is unset. The file repeats
// what the unit's other files say, but would override later changes to those. systemd has
// no request for that: Revert would also remove what others had set. If the file were
// removed, 'systemctl cat' would fail until the next daemon-reload. A file that cannot be
// emptied means the same until the next boot, and the error reports it.
func (a *Applier) tidy(name, property string, u unitState) error {
	ours := dropIn(name, property, u.Transient)
	others := slices.DeleteFunc(append([]string{u.Fragment}, u.DropIns...), func(f string) bool { return f == ours || f == "" })
	if !slices.ContainsFunc(others, func(f string) bool { return a.mentions(f, property) }) {
		err := a.empty(a.layout.Root.Path(ours), property)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: empty %s, which outvotes what is written into the unit's own files later: %w", journal.ErrUntidy, ours, err)
		}
	}
	return nil
}

// maxUnitFile bounds what is read of a unit's file, bytes; systemd reads no line of more
// than 1 MiB.
const maxUnitFile = 1 << 20

// mentions reports that a unit's file sets a property, or may.
func (a *Applier) mentions(file, property string) bool {
	data, err := unix.ReadAtMost(a.layout.Root.Path(file), maxUnitFile)
	if err != nil { // systemd still lists what was removed
		return !errors.Is(err, fs.ErrNotExist)
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(strings.TrimSpace(line), property) {
			return true
		}
	}
	return false
}

// emptyDropIn leaves a comment. The time of the last change stays: otherwise systemd,
// which knows the file, would ask for a reload.
func emptyDropIn(file, property string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|sys.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintf(f, "# homenode had systemd set this, and unset it again (%s): nothing is set here.\n", property)
	}
	if err != nil {
		return err
	}
	return os.Chtimes(file, info.ModTime(), info.ModTime())
}

// Equivalent is never asked for: systemd accepts every original.
func (a *Applier) Equivalent(s journal.Setting, original string) (string, error) {
	return "", fmt.Errorf("set %s to %q: %w: nothing else means the same", s, original, journal.ErrRefused)
}
