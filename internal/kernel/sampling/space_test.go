// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
)

// A process's root belongs to its owner: links and FIFOs in the place of a program
// bring no symbols, and do not block. /bin/sh of two containers are two files.
func TestTablesOfAnothersRoot(t *testing.T) {
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skipf("no program to look at: %v", err)
	}
	tree := kerneltest.Tree(t, map[string]string{
		"/proc/10/root/bin/good": string(exe), "/proc/10/root/bin/text": "no program", "/proc/11/root/bin/good": "another"})
	at := func(name string) string { return filepath.Join(tree.Path("/proc/10/root/bin"), name) }
	then := time.Unix(1000, 0)
	for _, err := range []error{sys.Mkfifo(at("fifo"), 0o644), os.Symlink("/proc/self/exe", at("link")), os.Symlink("good", at("near")),
		os.WriteFile(tree.Path("/proc/11/root/bin/good"), make([]byte, len(exe)), 0o755),
		os.Chtimes(at("good"), then, then), os.Chtimes(tree.Path("/proc/11/root/bin/good"), then, then)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	l := LiveSpaces(tree).(*live)
	done := make(chan bool)
	go func() {
		defer close(done)
		for _, path := range []string{"/bin/fifo", "/bin/link", "/bin/near", "/bin/text", "/bin/none"} {
			if l.table(10, path) != nil {
				t.Errorf("%s has symbols", path)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("still waiting for a FIFO")
	}
	if f, _, err := unix.OpenInside(tree.Path("/proc/10/root"), "/bin/good"); err != nil {
		t.Skipf("this kernel cannot open inside a root: %v", err)
	} else {
		f.Close()
	}
	if l.table(10, "/bin/good") == nil || l.table(11, "/bin/good") != nil {
		t.Error("files of the same path, size and time were taken for one")
	}
}
