// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"path"

	"homenode/internal/kernel/unix"
	"homenode/internal/set"
)

// The files of a cpuset that are read and written under the same name on v1
// and v2.
const (
	CPUsFile = "cpuset.cpus"
	MemsFile = "cpuset.mems"
)

// Effective is what a cgroup may use, restricted by all its ancestors.
type Effective struct {
	CPUs set.CPUSet
	Mems set.NodeSet
}

// effectiveFile names the file: cpuset.cpus.effective on v2 (since 5.0),
// cpuset.effective_cpus on v1 (since 3.17).
func effectiveFile(h Hier, file string) string {
	switch {
	case h.V2:
		return file + ".effective"
	case file == CPUsFile:
		return "cpuset.effective_cpus"
	}
	return "cpuset.effective_mems"
}

// EffectiveFile is the name of the file with what a cgroup may really use.
func (l Layout) EffectiveFile(file string) string { return effectiveFile(l.Cpuset, file) }

// ReadEffective reads what a cgroup may use. Where the controller is not on in
// the cgroup (v2), the nearest ancestor that has the file decides. On v1 before
// 3.17 the configured value is the effective one.
func (l Layout) ReadEffective(id string, buf *unix.Buffer) (Effective, error) {
	cpus, err1 := nearest(l, id, CPUsFile, set.ParseCPUs, buf)
	mems, err2 := nearest(l, id, MemsFile, set.ParseNodes, buf)
	if err := errors.Join(err1, err2); err != nil {
		return Effective{}, err
	}
	return Effective{CPUs: cpus, Mems: mems}, nil
}

func nearest[T any](l Layout, id, file string, parse func(string) (T, error), buf *unix.Buffer) (T, error) {
	var zero T
	if _, err := unix.Inode(l.Path(l.Cpuset, id, "")); err != nil {
		return zero, unix.Explain("read", id, "", err)
	}
	for at := id; ; at = path.Dir(at) {
		data, err := buf.ReadFile(l.Path(l.Cpuset, at, effectiveFile(l.Cpuset, file)))
		if err != nil && !l.Cpuset.V2 {
			data, err = buf.ReadFile(l.Path(l.Cpuset, at, file))
		}
		if err == nil {
			v, err := parse(string(data))
			if err != nil {
				return zero, fmt.Errorf("read %s: %w (%w)", path.Join(at, file), err, unix.ErrMalformed)
			}
			return v, nil
		}
		if at == "/" || at == "." {
			return zero, unix.Explain("read", path.Join(id, effectiveFile(l.Cpuset, file)), "", err)
		}
	}
}
