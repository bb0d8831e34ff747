// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strings"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
)

// Root is where /proc and /sys are. See unix.Root.
type Root = unix.Root

// LiveToken proves that an operation is on the running kernel. Appliers require one; a
// recorded tree cannot make one.
type LiveToken = unix.Live

// The sentinels, always wrapped.
var (
	ErrNotSupported = unix.ErrNotSupported
	ErrNotPermitted = unix.ErrNotPermitted
	ErrMalformed    = unix.ErrMalformed
	ErrGone         = unix.ErrGone
)

// Live is the running kernel, to read and to act upon.
func Live() LiveToken { return unix.NewLive() }

// At is a recorded or fake tree, to read only.
func At(dir string) Root { return unix.At(dir) }

// BootID names this boot: settings of cgroups do not outlive it.
func BootID(root Root) (string, error) {
	const file = "/proc/sys/kernel/random/boot_id"
	var buf unix.Buffer
	data, err := buf.ReadFile(root.Path(file))
	if err != nil {
		return "", unix.Explain("read", file, "", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// ReadOnlyCgroups says that cpusets cannot be written: their mount is read-only, as in
// many containers. Programs that manage cgroups write through mounts of their own.
func ReadOnlyCgroups(root Root) bool {
	layout, err := cgroup.Find(root)
	return err == nil && layout.ReadOnly
}
