// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// Conditions reads what decides how far figures can be trusted. What this machine does
// not show is unknown; the error is for malformed files.
func (p *Prober) Conditions() (Conditions, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := Conditions{Governor: p.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")}
	c.CPUModel, c.Hypervisor = p.processor()
	var errs [3]error
	c.Busy, errs[0] = p.busy()
	c.Throttled, errs[1] = p.throttled()
	c.Balancing, errs[2] = p.balancing()
	if mode := p.text("/sys/kernel/mm/transparent_hugepage/enabled"); mode != "" {
		c.HugeAllowed = unit.Some(!strings.Contains(mode, "[never]"))
	}
	return c, errors.Join(errs[:]...)
}

// text is a small file without its newline; "" when it cannot be read.
func (p *Prober) text(path string) string { return p.buf.Text(p.root.Path(path)) }

// processor is the model's name, and the hypervisor of a guest.
func (p *Prober) processor() (model, hypervisor string) {
	data, err := p.buf.ReadFile(p.root.Path("/proc/cpuinfo"))
	if err != nil {
		return "", ""
	}
	model = procfs.ParseModelName(data)
	hypervisor, _ = procfs.ReadHypervisor(&p.buf, p.root)
	return model, hypervisor
}

// ticks a second, in every /proc: USER_HZ.
const userHz = 100

func (p *Prober) busy() (unit.Opt[time.Duration], error) {
	data, err := p.buf.ReadFile(p.root.Path("/proc/stat"))
	if err != nil {
		return unit.None[time.Duration](), nil
	}
	ticks, err := procfs.ParseStatBusy(data)
	return unit.OptOf(time.Duration(ticks)*(time.Second/userHz), err == nil), err
}

// throttled adds up events of cores and packages
// (arch/x86/kernel/cpu/mce/therm_throt.c). A package's count is read for each of its
// CPUs, so the sum is too large. It only serves to show that it rises.
func (p *Prober) throttled() (unit.Opt[uint64], error) {
	files, _ := filepath.Glob(p.root.Path("/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count"))
	var sum uint64
	for _, file := range files {
		data, err := p.buf.ReadFile(file)
		if err != nil {
			return unit.None[uint64](), nil
		}
		n, err := procfs.ParseCount(file, data)
		if err != nil {
			return unit.None[uint64](), err
		}
		sum += n
	}
	return unit.OptOf(sum, len(files) > 0), nil
}

func (p *Prober) balancing() (unit.Opt[bool], error) {
	const file = "/proc/sys/kernel/numa_balancing"
	data, err := p.buf.ReadFile(p.root.Path(file))
	if unix.Classify(err) == unix.ErrGone && p.text("/proc/sys/kernel/ostype") != "" {
		return unit.Some(false), nil // a kernel without it
	}
	if err != nil {
		return unit.None[bool](), nil
	}
	n, err := procfs.ParseCount(file, data)
	return unit.OptOf(n != 0, err == nil), err
}
