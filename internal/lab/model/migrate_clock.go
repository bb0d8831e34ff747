// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"time"

	"homenode/internal/kernel/migrate"
	"homenode/internal/unit"
)

// sharedClock is the model's shared time, as of its last advance. Unlike modelClock
// it leaves the model's state alone: during a move a victim keeps running.
type sharedClock struct {
	model *Model
	mhz   uint64
}

// MigrateClock is the model's time for moving memory. While the model is off it is nil,
// with an explanation: memory costs nothing then.
func (m *Model) MigrateClock() (clock migrate.Clock, note string, err error) {
	mhz := m.word(OffMHz).Load()
	if mhz == 0 {
		return nil, "", fmt.Errorf("read model %s: 0 MHz is not a valid clock", m.path)
	}
	if m.State() == Off {
		return nil, "the lab's model is off, so memory costs nothing and times mean little ('homenode-load control on' switches it on)", nil
	}
	return sharedClock{m, mhz}, "", nil
}

// Now divides first: cycles times 1000 would overflow after some years.
func (c sharedClock) Now() time.Duration {
	cycles := c.model.word(OffCycles).Load()
	return time.Duration(cycles/c.mhz)*time.Microsecond + time.Duration(cycles%c.mhz*1000/c.mhz)
}

func (c sharedClock) Name() string {
	return fmt.Sprintf("model clock of the lab, %d cycles a µs", c.mhz)
}

func (c sharedClock) How() unit.Source { return unit.HowModelled }
