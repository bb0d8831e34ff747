// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// Segment names shared memory: a file of tmpfs or hugetlbfs, or a System V
// segment by ID or key.
type Segment struct {
	File string
	ID   unit.Opt[int]
	Key  unit.Opt[int]
	// Create makes it, with this size, if it does not exist. 0 = it must exist.
	Create unit.Bytes
	Offset unit.Bytes // multiple of its page size
	Length unit.Bytes // 0 = to the end
}

// String names it in messages.
func (s Segment) String() string {
	if id, ok := s.ID.Get(); ok {
		return fmt.Sprintf("segment %d", id)
	}
	if key, ok := s.Key.Get(); ok {
		return fmt.Sprintf("segment of key %#x", uint32(key))
	}
	return s.File
}

// mapped is a segment in this process.
type mapped struct {
	name    string
	all     []byte
	page    int  // of the file system: large for hugetlbfs
	huge    bool // its pages cannot be looked up without making them
	created bool
	id      unit.Opt[int]
	unmap   func() error
	remove  func() error // what was created
}

func openSegment(s Segment) (*mapped, error) {
	if s.File != "" {
		return openFile(s)
	}
	return attach(s)
}

// openFile maps a file. Only tmpfs and hugetlbfs keep a policy with it: only their
// mappings, and those of System V segments, have the kernel's set_policy
// (vm_operations_struct in mm/shmem.c, fs/hugetlbfs, ipc/shm.c).
func openFile(s Segment) (*mapped, error) {
	flags, created := os.O_RDWR, false
	if _, err := os.Stat(s.File); errors.Is(err, fs.ErrNotExist) && s.Create > 0 {
		flags, created = os.O_RDWR|os.O_CREATE|os.O_EXCL, true
		if err := checkNewFile(s); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(s.File, flags, 0o600)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("open %s: no such file: --create SIZE makes it", s.File)
		}
		return nil, unix.Explain("open", s.File, "", err)
	}
	defer f.Close()
	m, err := mapFile(f, s, created)
	if err != nil && created {
		_ = os.Remove(s.File)
	}
	return m, err
}

// checkNewFile refuses a file that could not be placed, before it is made, by the file
// system of its folder.
func checkNewFile(s Segment) error {
	var in sys.Statfs_t
	if err := sys.Statfs(filepath.Dir(s.File), &in); err != nil {
		return unix.Explain("make", s.File, "", err)
	}
	m, err := mappedOn(in, s)
	if err != nil {
		return err
	}
	return m.checkPart(s, roundUp(s.Create, m.page))
}

func mappedOn(in sys.Statfs_t, s Segment) (*mapped, error) {
	switch uint32(in.Type) {
	case sys.TMPFS_MAGIC:
		return &mapped{name: s.File, page: os.Getpagesize()}, nil
	case sys.HUGETLBFS_MAGIC:
		return &mapped{name: s.File, page: int(in.Bsize), huge: true}, nil
	}
	return nil, fmt.Errorf("place %s: its file system keeps no policy, only tmpfs and hugetlbfs do: "+
		"place the program that reads or writes it first ('homenode run --nodes … -- CMD'): the page cache follows the policy of that program", s.File)
}

func mapFile(f *os.File, s Segment, created bool) (*mapped, error) {
	var in sys.Statfs_t
	if err := sys.Fstatfs(int(f.Fd()), &in); err != nil {
		return nil, unix.Explain("look at the file system of", s.File, "", err)
	}
	m, err := mappedOn(in, s)
	if err != nil {
		return nil, err
	}
	m.created = created
	size, err := sizeOf(f, s, m)
	if err != nil {
		return nil, err
	}
	m.all, err = sys.Mmap(int(f.Fd()), 0, int(size), sys.PROT_READ|sys.PROT_WRITE, sys.MAP_SHARED)
	if err != nil {
		return nil, unix.Explain("map", s.File, "", err)
	}
	m.unmap = func() error { return sys.Munmap(m.all) }
	m.remove = func() error { return os.Remove(s.File) }
	return m, nil
}

// sizeOf gives a new file its size.
func sizeOf(f *os.File, s Segment, m *mapped) (unit.Bytes, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return 0, unix.Explain("look at", s.File, "", err)
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("place %s: it is not a regular file", s.File)
	case m.created:
		size := roundUp(s.Create, m.page)
		return size, unix.Explain("make", s.File, "", f.Truncate(int64(size)))
	}
	size := roundUp(unit.Bytes(info.Size()), m.page)
	if s.Create > 0 && size != roundUp(s.Create, m.page) {
		return 0, fmt.Errorf("make %s: it exists already, with %v: leave --create out, or remove it", s.File, size)
	}
	if size == 0 {
		return 0, fmt.Errorf("place %s: it is empty: the program that fills it decides its size", s.File)
	}
	return size, nil
}

func roundUp(b unit.Bytes, page int) unit.Bytes {
	p := unit.Bytes(page)
	return (b + p - 1) / p * p
}

// sysvAttach is replaced in a test.
var sysvAttach = sys.SysvShmAttach

// attach attaches a System V segment.
func attach(s Segment) (*mapped, error) {
	m := &mapped{name: s.String(), page: os.Getpagesize(), id: s.ID}
	if key, ok := s.Key.Get(); ok {
		if err := m.find(s, key); err != nil {
			return nil, err
		}
	}
	id, _ := m.id.Get()
	m.remove = func() error { _, err := sys.SysvShmCtl(id, sys.IPC_RMID, nil); return err }
	var err error
	m.all, err = sysvAttach(id, 0, 0)
	if err != nil && m.created {
		_ = m.remove()
	}
	if errors.Is(err, sys.EINVAL) || errors.Is(err, sys.EIDRM) {
		return nil, fmt.Errorf("attach %s: there is none: 'ipcs -m' lists them", m.name)
	}
	if err != nil {
		return nil, unix.Explain("attach", m.name, "CAP_IPC_OWNER", err)
	}
	// An attached segment is rounded up to pages: mbind needs whole ones.
	m.huge = isHuge(m.all)
	m.unmap = func() error { return sys.SysvShmDetach(m.all) }
	return m, nil
}

// find looks a key up, or makes a segment for it.
func (m *mapped) find(s Segment, key int) error {
	id, err := sys.SysvShmGet(key, 0, 0)
	switch {
	case err == nil && s.Create > 0:
		return fmt.Errorf("make %s: it exists already, with ID %d: leave --create out, or remove it ('ipcrm -m %d')", m.name, id, id)
	case errors.Is(err, sys.ENOENT) && s.Create == 0:
		return fmt.Errorf("find %s: no such segment: --create SIZE makes it", m.name)
	case errors.Is(err, sys.ENOENT):
		if err := m.checkPart(s, roundUp(s.Create, m.page)); err != nil {
			return err
		}
		id, err = sys.SysvShmGet(key, int(roundUp(s.Create, m.page)), sys.IPC_CREAT|sys.IPC_EXCL|0o600)
		m.created = err == nil
	}
	if err != nil {
		return unix.Explain("find", m.name, "CAP_IPC_OWNER", err)
	}
	m.id = unit.Some(id)
	m.name = fmt.Sprintf("segment %d (key %#x)", id, uint32(key))
	return nil
}

// part is the part to be placed.
func (m *mapped) part(s Segment) ([]byte, error) {
	if err := m.checkPart(s, roundUp(unit.Bytes(len(m.all)), m.page)); err != nil {
		return nil, err
	}
	all := m.all[:len(m.all):len(m.all)]
	if s.Length > 0 && s.Offset+s.Length < unit.Bytes(len(all)) {
		all = all[:s.Offset+s.Length]
	}
	return all[s.Offset:], nil
}

// checkPart requires whole pages of what exists, or is to be made.
func (m *mapped) checkPart(s Segment, whole unit.Bytes) error {
	switch {
	case s.Offset%unit.Bytes(m.page) != 0 || s.Length%unit.Bytes(m.page) != 0:
		return fmt.Errorf("place part of %s: --offset %v and --length %v must be multiples of its page size, %v", m.name, s.Offset, s.Length, unit.Bytes(m.page))
	case s.Offset >= whole || s.Length > whole-s.Offset:
		return fmt.Errorf("place part of %s: --offset %v, --length %v: it has %v", m.name, s.Offset, s.Length, whole)
	}
	return nil
}
