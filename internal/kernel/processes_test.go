// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"slices"
	"testing"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

func TestDecodeProcess(t *testing.T) {
	root := kerneltest.Tree(t, kerneltest.Files{
		"/proc/7/stat":      "7 (a (b) c) S 1 1 1 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 99 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0\n",
		"/proc/7/status":    "Name:\ta (b) c\nTgid:\t7\nUid:\t1\t2\t3\t4\nCapEff:\t0000000000000000\nMems_allowed_list:\t0-1\n",
		"/proc/8/stat":      "8 (t) S 1 1 1 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 99 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0\n",
		"/proc/8/status":    "Tgid:\t7\n",
		"/proc/9/stat":      "9 (k) S 1 1 1 0 -1 2097152 0 0 0 0 1 0 0 0 20 0 1 0 99 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0\n",
		"/proc/10/stat":     "10 (z) Z 1 1 1 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 99 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0\n",
		"/proc/11/stat":     "broken",
		"/proc/self/status": "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000800000\n",
	})
	p, err := FindProcess(root, 7)
	if err != nil || p.String() != "process 7 (a (b) c)" || p.UID.Or(0) != 2 || p.Mems.String() != "0-1" {
		t.Errorf("%+v, %v", p, err)
	}
	for pid, want := range map[int]error{6: ErrGone, 8: ErrMalformed, 9: ErrNotSupported, 10: ErrGone, 11: ErrMalformed} {
		if p, err := FindProcess(root, pid); !errors.Is(err, want) || p != (Process{}) {
			t.Errorf("%d: %+v, %v, want %v", pid, p, err, want)
		}
	}
	powers, err := ReadPowers(root)
	if err != nil || !powers.Nice() || !slices.Equal(powers.Lacks(), []string{"CAP_SYS_PTRACE"}) || powers.UID.Or(9) != 0 {
		t.Errorf("%+v, %v", powers, err)
	}
	if got := (Powers{}).Lacks(); len(got) != 2 {
		t.Errorf("nothing known: it lacks %v", got)
	}
}

// A mount is entered by its type; one that is not there, and /proc, are not.
func TestServedByKernel(t *testing.T) {
	var buf unix.Buffer
	all, err := unix.Parsed(&buf, "/proc/self/mountinfo", procfs.ParseMountinfo)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d mounts, %v", len(all), err)
	}
	for _, m := range all {
		want := m.Type == "tmpfs" || m.Type == "ext4" || m.Type == "xfs" || m.Type == "btrfs"
		if got := ServedByKernel(m.ID); got != want && !slices.Contains(ownFiles, m.Type) {
			t.Errorf("%s on %s: %v, want %v", m.Type, m.Point, got, want)
		}
	}
	if ServedByKernel(1 << 60) {
		t.Error("a mount that does not exist")
	}
}
