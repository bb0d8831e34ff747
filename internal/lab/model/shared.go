// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/binary"
	"fmt"
	"os"
)

// Offsets into the shared file; schema/lab_layout.golden holds them to
// lab/include/homenode_lab.h.
const (
	OffMagic     = 0
	OffMHz       = 40
	offState     = 512
	offPhase     = 520
	offIdleRate  = 536
	offApplied   = 1024
	OffCycles    = 1032
	offHeartbeat = 1040
	Magic        = 0x42414c45444e4f48
)

// Bytes is the size of the file: HOMENODE_LAB_BYTES.
const Bytes = 1 << 20

// Clock is the plugin's report of the model's time, which is also the guest's.
type Clock struct {
	State       uint64 `json:"state"` // 0 off, 1 on
	MHz         uint64 `json:"mhz"`
	ModelCycles uint64 `json:"model_cycles"`
}

// Seconds are those of the guest's clock since it started.
func (c Clock) Seconds() float64 { return float64(c.ModelCycles) / float64(c.MHz) / 1e6 }

// ReadClock reads the clock from a run's shared file, or from the BAR in the
// guest.
func ReadClock(path string) (Clock, error) {
	f, err := os.Open(path)
	if err != nil {
		return Clock{}, fmt.Errorf("open lab's shared file: %w", err)
	}
	defer f.Close()
	page := make([]byte, 2048)
	if _, err := f.ReadAt(page, 0); err != nil {
		return Clock{}, fmt.Errorf("read lab's shared file %s: %w", path, err)
	}
	return decodeClock(page)
}

func decodeClock(page []byte) (Clock, error) {
	word := func(off int) uint64 { return binary.LittleEndian.Uint64(page[off:]) }
	if word(OffMagic) != Magic {
		return Clock{}, fmt.Errorf("read lab's shared file: magic is %#x, want %#x: is the plugin loaded?", word(OffMagic), uint64(Magic))
	}
	return Clock{State: word(offApplied), MHz: word(OffMHz), ModelCycles: word(OffCycles)}, nil
}

// SetIdleRate sets, in a run's shared file, how fast the guest's clock runs against the
// host's while all CPUs are idle. While they are busy it runs as fast as the host can. 0:
// in real time, at most.
func SetIdleRate(path string, rate uint64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open lab's shared file: %w", err)
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, rate), offIdleRate); err != nil {
		return fmt.Errorf("write lab's shared file: %w", err)
	}
	return nil
}
