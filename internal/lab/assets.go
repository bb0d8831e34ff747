// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNotInstalled means that the lab, or QEMU, is missing.
var ErrNotInstalled = errors.New("the lab is not installed")

// Assets are the files that lab/build.sh makes.
type Assets struct {
	QEMU, Kernel, Initramfs, Plugin string
	Debian                          string // disk of the Debian guest (lab/debian.sh); optional
}

// qemuEnv names another QEMU than the one in PATH.
const qemuEnv = "HOMENODE_QEMU"

func findQEMU() (string, error) {
	if named := os.Getenv(qemuEnv); named != "" {
		qemu, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("find the QEMU that %s names: %w: %w", qemuEnv, err, ErrNotInstalled)
		}
		return filepath.Abs(qemu)
	}
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		return "", fmt.Errorf("find qemu-system-x86_64: not in PATH: install it (Debian: apt-get install qemu-system-x86), or name it in %s: %w", qemuEnv, ErrNotInstalled)
	}
	return qemu, nil
}

// FindAssets searches for QEMU, and in dir for the files that `make lab`
// builds.
func FindAssets(dir string) (Assets, error) {
	a := Assets{
		Kernel:    filepath.Join(dir, "vmlinux"),
		Initramfs: filepath.Join(dir, "initramfs.cpio"),
		Plugin:    filepath.Join(dir, "libhomenode_lab.so"),
		Debian:    filepath.Join(dir, "debian.img"),
	}
	qemu, err := findQEMU()
	if err != nil {
		return Assets{}, err
	}
	a.QEMU = qemu
	for _, path := range []string{a.Kernel, a.Initramfs, a.Plugin} {
		if _, err := os.Stat(path); err != nil {
			return Assets{}, fmt.Errorf("find lab file %s: run 'make lab' first, or name its folder with --lab: %w", path, ErrNotInstalled)
		}
	}
	return a, nil
}
