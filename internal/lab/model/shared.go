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
	offMagic     = 0
	offMHz       = 40
	offState     = 512
	offPhase     = 520
	offApplied   = 1024
	offCycles    = 1032
	offPaced     = 1040
	offPacedNS   = 1048
	offSlowest   = 1056
	offHeartbeat = 1064
	labMagic     = 0x42414c45444e4f48
)

// Bytes is the size of the file: HOMENODE_LAB_BYTES.
const Bytes = 1 << 20

// Clock is what the plugin says about the model's time.
type Clock struct {
	State           uint64 `json:"state"` // 0 off, 1 count, 2 pace
	MHz             uint64 `json:"mhz"`
	ModelCycles     uint64 `json:"model_cycles"`
	PacedCycles     uint64 `json:"paced_cycles"`
	PacedWallNS     uint64 `json:"paced_wall_ns"`
	SlowestPermille uint64 `json:"slowest_permille"`
}

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
	if word(offMagic) != labMagic {
		return Clock{}, fmt.Errorf("read lab's shared file: magic is %#x, want %#x: is the plugin loaded?", word(offMagic), uint64(labMagic))
	}
	return Clock{
		State: word(offApplied), MHz: word(offMHz), ModelCycles: word(offCycles),
		PacedCycles: word(offPaced), PacedWallNS: word(offPacedNS), SlowestPermille: word(offSlowest),
	}, nil
}
