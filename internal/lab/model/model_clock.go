// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"homenode/internal/kernel/membench"
	"homenode/internal/unit"
)

// Offsets of the vCPUs' clocks, as in schema/lab_layout.golden.
const (
	offCPUs      = 16
	offVCPU      = 4096
	vcpuBytes    = 2048
	offVCPUClock = 896
	offUserCycle = 0 // counter[HOMENODE_USER][HOMENODE_CYCLES]
)

// modelClock is the model's time, for the prober: each vCPU's own clock. It switches the
// model off while nothing is measured, which saves the host's time.
type modelClock struct {
	model *Model
	vcpus []byte
	cpus  int
	mhz   uint64
	state State // to go back to
}

// ProbeClock maps the clocks of the vCPUs. They stay in step to within the plugin's
// quantum (lab/plugin/clock.h).
func (m *Model) ProbeClock() (membench.Staged, error) {
	f, err := os.Open(m.path)
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	defer f.Close()
	c := &modelClock{model: m, cpus: int(m.word(offCPUs).Load()), mhz: m.word(OffMHz).Load()}
	if c.cpus < 1 || c.cpus > 64 || c.mhz == 0 {
		return nil, fmt.Errorf("read model %s: %d CPUs at %d MHz are not valid", m.path, c.cpus, c.mhz)
	}
	c.vcpus, err = syscall.Mmap(int(f.Fd()), 0, offVCPU+c.cpus*vcpuBytes, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map model %s: %w", m.path, err)
	}
	return c, nil
}

// Now has no prologue, because probe's hot loops need that.
//
//go:nosplit
func (c *modelClock) Now(cpu int) time.Duration {
	if uint(cpu) >= uint(c.cpus) {
		return 0
	}
	return c.at(cpu, offVCPUClock)
}

// Work is user mode's part.
//
//go:nosplit
func (c *modelClock) Work(cpu int) time.Duration {
	if uint(cpu) >= uint(c.cpus) {
		return 0
	}
	return c.at(cpu, offUserCycle)
}

//go:nosplit
func (c *modelClock) at(cpu, word int) time.Duration {
	cycles := (*atomic.Uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(c.vcpus)), offVCPU+cpu*vcpuBytes+word)).Load()
	return time.Duration(cycles * 1000 / c.mhz)
}

func (c *modelClock) Name() string {
	return fmt.Sprintf("model clock of the lab, %d cycles a µs", c.mhz)
}

func (c *modelClock) How() unit.Source { return unit.HowModelled }

// Prepare switches the model off.
func (c *modelClock) Prepare() error {
	c.state = State(c.model.word(offApplied).Load())
	if c.state == Off {
		return fmt.Errorf("measure by the %s: the model is off: 'homenode-load control on' starts it", c.Name())
	}
	return c.model.Switch(Off)
}

// Measure restores the model's state.
func (c *modelClock) Measure() error { return c.model.Switch(c.state) }
