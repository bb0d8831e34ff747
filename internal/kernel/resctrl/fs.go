// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// FS is a mounted resctrl file system, for reading. Paths are below its mount point; ""
// is the default group.
type FS interface {
	// Read is valid until the next Read.
	Read(file string) ([]byte, error)
	Dirs(dir string) ([]string, error)
	// ID distinguishes a group from one that was made again under the same name.
	ID(dir string) (uint64, error)
}

// Acts is an FS that can be changed.
type Acts interface {
	FS
	Make(dir string) error
	Remove(dir string) error
	Write(file, text string) error
}

// Mount says where it is mounted and how.
type Mount struct {
	Point string // absolute, inside the root
	MBps  bool   // mba_MBps: MB is in MiB/s, kept by the kernel's feedback
}

// Errors of Find: neither is a defect of homenode.
var (
	// ErrNotMounted: this machine supports resctrl, but it is not mounted.
	ErrNotMounted error = unix.Unsupported("resctrl is not mounted: mount -t resctrl resctrl " + usualPoint)
	// ErrNoResctrl: the kernel makes the mount point where CPU and kernel support any of
	// it (resctrl_init in fs/resctrl/rdtgroup.c, since 4.10), and here it did not.
	ErrNoResctrl error = unix.Unsupported("no resctrl: neither RDT nor QoS in this CPU, or not in this kernel")
)

const usualPoint = "/sys/fs/resctrl"

// Find reads where resctrl is mounted.
func Find(root unix.Root) (Mount, error) {
	const file = "/proc/self/mountinfo"
	var buf unix.Buffer
	data, err := buf.ReadFile(root.Path(file))
	if err != nil {
		return Mount{}, unix.Explain("find resctrl in", file, "", err)
	}
	mounts, err := procfs.ParseMountinfo(data)
	if err != nil {
		return Mount{}, fmt.Errorf("find resctrl: %w", err)
	}
	for _, m := range mounts {
		if m.Type == "resctrl" {
			return Mount{Point: m.Point, MBps: slices.Contains(m.Super, "mba_MBps")}, nil
		}
	}
	if _, err := unix.Inode(root.Path(usualPoint)); err != nil {
		return Mount{}, ErrNoResctrl
	}
	return Mount{}, ErrNotMounted
}

// At is the file system of a tree, for reading.
func At(root unix.Root, m Mount) FS { return &tree{dir: root.Path(m.Point)} }

// Live is the running kernel's, for acting: it needs the token.
func Live(live unix.Live, m Mount) (Acts, error) {
	if !live.Valid() {
		return nil, fmt.Errorf("act on resctrl: only the running kernel can be acted upon (%w)", unix.ErrNotSupported)
	}
	return &tree{dir: live.Root().Path(m.Point)}, nil
}

type tree struct {
	dir string
	buf unix.Buffer
}

func (t *tree) at(name string) string { return path.Join(t.dir, name) }

func (t *tree) Read(file string) ([]byte, error) { return t.buf.ReadFile(t.at(file)) }

func (t *tree) Dirs(dir string) (names []string, err error) {
	entries, err := os.ReadDir(t.at(dir))
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (t *tree) ID(dir string) (uint64, error) { return unix.Inode(t.at(dir)) }

func (t *tree) Make(dir string) error { return os.Mkdir(t.at(dir), 0o755) }

// Remove is rmdir(2): os.Remove would unlink a file.
func (t *tree) Remove(dir string) error { return unix.RemoveDir(t.at(dir)) }

func (t *tree) Write(file, text string) error { return unix.WriteFile(t.at(file), text) }

// Explain says what failed, with the kernel's own text (info/last_cmd_status, since
// 4.15), where there is one.
func Explain(fs FS, verb, object string, err error) error {
	if err == nil {
		return nil
	}
	full := unix.Explain(verb, "resctrl "+object, "CAP_SYS_ADMIN or root", err)
	said, bad := fs.Read("info/last_cmd_status")
	text := strings.TrimSpace(string(said))
	if bad != nil || text == "" || text == "ok" {
		return full
	}
	return fmt.Errorf("%w: %q", full, clip(text))
}

// clip bounds a text from outside.
func clip(text string) string {
	const longest = 120
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) > longest {
		return text[:longest] + "…"
	}
	return text
}

// IsGone reports that a group, or a task, no longer exists.
func IsGone(err error) bool { return errors.Is(unix.Classify(err), unix.ErrGone) }
