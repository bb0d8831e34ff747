// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNotInstalled says that the lab, or QEMU, is not there.
var ErrNotInstalled = errors.New("the lab is not installed")

// Assets are the files lab/build.sh makes.
type Assets struct {
	QEMU, Kernel, Initramfs, Plugin string
	Debian                          string // disk of the Debian guest (lab/debian.sh); it need not be there
}

// FindAssets looks for QEMU and for what `make lab` builds in dir.
func FindAssets(dir string) (Assets, error) {
	a := Assets{
		Kernel:    filepath.Join(dir, "vmlinuz"),
		Initramfs: filepath.Join(dir, "initramfs.cpio"),
		Plugin:    filepath.Join(dir, "libhomenode_lab.so"),
		Debian:    filepath.Join(dir, "debian.img"),
	}
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		return Assets{}, fmt.Errorf("find qemu-system-x86_64: not in PATH: install it (Debian: apt-get install qemu-system-x86): %w", ErrNotInstalled)
	}
	a.QEMU = qemu
	for _, path := range []string{a.Kernel, a.Initramfs, a.Plugin} {
		if _, err := os.Stat(path); err != nil {
			return Assets{}, fmt.Errorf("find lab file %s: run 'make lab' first, or name its folder with --lab: %w", path, ErrNotInstalled)
		}
	}
	return a, nil
}
