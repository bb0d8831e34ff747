// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// State is a state of the model.
type State uint64

// States, in the order of HOMENODE_OFF … of lab/include/homenode_lab.h.
const (
	Off State = iota // nothing is modelled or counted
	On
)

// Model is the lab's memory model as the guest sees it: BAR 2 of the ivshmem
// device. Only one program at a time should switch it.
type Model struct {
	page []byte
	path string // of the BAR
}

// Open maps the model. It works only inside the lab.
func Open(sysfs string) (*Model, error) {
	vendors, err := filepath.Glob(filepath.Join(sysfs, "bus/pci/devices/*/vendor"))
	if err != nil {
		return nil, err
	}
	for _, v := range vendors {
		dir := filepath.Dir(v)
		if fileIs(v, "0x1af4") && fileIs(filepath.Join(dir, "device"), "0x1110") {
			return mapModel(filepath.Join(dir, "resource2"))
		}
	}
	return nil, fmt.Errorf("find ivshmem device 1af4:1110 in %s: none: this runs only inside the lab's guest", sysfs)
}

func fileIs(path, want string) bool {
	text, err := os.ReadFile(path)
	return err == nil && strings.TrimSpace(string(text)) == want
}

func mapModel(path string) (*Model, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_SYNC, 0)
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	defer f.Close()
	page, err := syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map model %s: %w", path, err)
	}
	m := &Model{page: page, path: path}
	if got := m.word(OffMagic); got.Load() != Magic {
		return nil, fmt.Errorf("map model %s: magic is %#x, want %#x: is the plugin loaded?", path, got.Load(), uint64(Magic))
	}
	return m, nil
}

func (m *Model) word(off int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&m.page[off]))
}

// Clock reads the model's time.
func (m *Model) Clock() Clock {
	var copied [2048]byte
	for _, off := range []int{OffMagic, OffMHz, offApplied, OffCycles} {
		binary.LittleEndian.PutUint64(copied[off:], m.word(off).Load())
	}
	c, _ := decodeClock(copied[:]) // the magic was checked when it was mapped
	return c
}

// switchLimit bounds the wait for a change of state, by the guest's clock. vCPUs that ran
// ahead while the model was off have to be caught up with, which takes milliseconds.
const switchLimit = 10 * time.Second

// Switch asks for a state and waits until it is in force.
func (m *Model) Switch(s State) error {
	m.word(offState).Store(uint64(s))
	for end := time.Now().Add(switchLimit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if m.word(offApplied).Load() == uint64(s) {
			return nil
		}
	}
	return fmt.Errorf("switch model to state %d: still in state %d after %v", s, m.word(offApplied).Load(), switchLimit)
}

// SetPhase sets the phase that the load programs credit their operations to.
func (m *Model) SetPhase(n uint64) { m.word(offPhase).Store(n) }
