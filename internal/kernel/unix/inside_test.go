// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"
)

// hostileTree has a regular file and what a tree can have in its place.
func hostileTree(t *testing.T) string {
	t.Helper()
	dir, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(secret, []byte("the host's"), 0o644), os.Mkdir(at("bin"), 0o755), os.WriteFile(at("bin/good"), []byte("theirs"), 0o644),
		sys.Mkfifo(at("fifo"), 0o644), os.Symlink("/dev/zero", at("zero")), os.Symlink(secret, at("absolute")),
		os.Symlink(filepath.Dir(secret), at("dir")), os.Symlink("bin/good", at("inside")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// soon fails the test when call waits, as opening a FIFO does.
func soon(t *testing.T, what string, call func()) {
	t.Helper()
	done := make(chan bool)
	go func() { call(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatalf("%s: still waiting", what)
	}
}

func TestOpenInside(t *testing.T) {
	dir := hostileTree(t)
	f, st, err := OpenInside(dir, "/bin/good")
	if errors.Is(err, sys.ENOSYS) {
		t.Skip("this kernel has no openat2")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); string(text) != "theirs" || err != nil || st.Size != 6 {
		t.Errorf("%q, %v, %d bytes", text, err, st.Size)
	}
	for _, path := range []string{"/fifo", "/zero", "/absolute", "/dir/secret", "/inside", "/bin", "/none", "", "/../../../../../../../../etc/passwd"} {
		soon(t, path, func() {
			if f, _, err := OpenInside(dir, path); err == nil {
				f.Close()
				t.Errorf("%q was opened", path)
			}
		})
	}
}

// Below a tree that is not the kernel's, only a regular file is read.
func TestReadRefusesWhatIsNoFile(t *testing.T) {
	dir := hostileTree(t)
	for _, name := range []string{"fifo", "zero", "bin"} {
		path := filepath.Join(dir, name)
		var buf Buffer
		for about, read := range map[string]func() error{
			"ReadFile": func() error { _, err := buf.ReadFile(path); return err },
			"Line":     func() error { _, err := buf.Line(path); return err },
			"Lines":    func() error { return buf.Lines(path, name, nil, func(int, []byte) error { return nil }) },
		} {
			soon(t, about+" "+name, func() {
				if err := read(); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "not a regular file") {
					t.Errorf("%s %s: %v", about, name, err)
				}
			})
		}
	}
	if data, err := new(Buffer).ReadFile(filepath.Join(dir, "bin/good")); err != nil || string(data) != "theirs" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestOfKernel(t *testing.T) {
	for path, want := range map[string]bool{
		"/proc/10/numa_maps": true, "/proc/10/task/11/stat": true, "/sys/fs/cgroup/a/cpu.stat": true,
		"/proc/10/root/proc/10/numa_maps": false, "/proc/10/cwd/proc/1/maps": false, "/proc/self/fd/7/proc/1/maps": false, "/tmp/proc/10/maps": false,
	} {
		if got := ofKernel(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// A file without an end, and a line without one, do not take all memory.
func TestReadIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	var buf Buffer
	err := buf.Lines(path, "long", nil, func(int, []byte) error { return nil })
	if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "line 1") || len(buf.b) > 4*maxLine {
		t.Errorf("%v, %d bytes", err, len(buf.b))
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := buf.fill(int(f.Fd()), 100<<10); !errors.Is(err, ErrMalformed) {
		t.Errorf("a whole file: %v", err)
	}
	if data, err := buf.fill(int(f.Fd()), 1<<20); err != nil || len(data) != 1<<20 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// With and without openat2, only regular files of allowed owners are opened, without a
// detour.
func TestOpenBeneath(t *testing.T) {
	defer func() { noOpenat2 = false }()
	dir := hostileTree(t)
	if err := os.Link(filepath.Join(dir, "bin/good"), filepath.Join(t.TempDir(), "second")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin/own"), []byte("own"), 0o600); err != nil {
		t.Fatal(err)
	}
	anybody := func(uint32, uint32) bool { return true }
	for _, noOpenat2 = range []bool{false, true} {
		for _, c := range []struct{ folder, path string }{{dir, "bin/own"}, {dir + "/bin", "own"}, {dir, "/../bin/./own"}} {
			f, err := OpenBeneath(c.folder, c.path, anybody, nil)
			if err != nil {
				t.Fatalf("without openat2 %v, %v: %v", noOpenat2, c, err)
			}
			if data, _ := io.ReadAll(f); string(data) != "own" {
				t.Errorf("%v: %q", c, data)
			}
			f.Close()
		}
		for _, c := range []struct{ folder, path, want string }{
			{dir, "bin/good", "2 names"}, {dir, "fifo", "regular"}, {dir, "zero", ""}, {dir, "absolute", ""}, {dir, "inside", ""}, {dir, "dir/secret", ""},
			{dir + "/dir", "secret", ""}, {dir, "bin", "regular"}, {dir, "none", "no such"}, {"/", "proc/self/status", "file system"}, {dir, "../../etc/passwd", ""},
		} {
			soon(t, c.path, func() {
				if f, err := OpenBeneath(c.folder, c.path, anybody, nil); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("without openat2 %v, %v: %v, %v", noOpenat2, c, f, err)
				}
			})
		}
		f, err := OpenBeneath(dir, "bin/own", func(owner, folder uint32) bool { return owner != folder }, nil)
		if !errors.Is(err, ErrNotPermitted) || f != nil {
			t.Errorf("as a user without permission: %v", err)
		}
	}
}

// Below its folder, another mount is entered only if it is accepted, and each that is on the
// way is asked for.
func TestOpenBeneathMounts(t *testing.T) {
	defer func() { noOpenat2 = false }()
	dir := t.TempDir()
	at := filepath.Join(dir, "service")
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := sys.Mount("tmpfs", at, "tmpfs", sys.MS_NOSUID|sys.MS_NODEV, "size=64k"); err != nil {
		t.Skipf("mounting a tmpfs needs CAP_SYS_ADMIN: %v", err)
	}
	defer func() { _ = sys.Unmount(at, sys.MNT_DETACH) }()
	if err := os.WriteFile(filepath.Join(at, "p99"), []byte("0.01"), 0o644); err != nil {
		t.Fatal(err)
	}
	anybody := func(uint32, uint32) bool { return true }
	for _, noOpenat2 = range []bool{false, true} {
		var asked []uint64
		enter := func(ok bool) func(uint64) bool {
			return func(mount uint64) bool { asked = append(asked, mount); return ok }
		}
		if f, err := OpenBeneath(dir, "service/p99", anybody, enter(false)); !errors.Is(err, ErrNotPermitted) || f != nil {
			t.Errorf("without openat2 %v: a refused mount: %v", noOpenat2, err)
		}
		f, err := OpenBeneath(dir, "service/p99", anybody, enter(true))
		if err != nil || len(asked) != 2 || asked[0] != asked[1] {
			t.Fatalf("without openat2 %v: an accepted mount: %v, asked for %v", noOpenat2, err, asked)
		}
		if data, _ := io.ReadAll(f); string(data) != "0.01" {
			t.Errorf("%q", data)
		}
		f.Close()
	}
}
