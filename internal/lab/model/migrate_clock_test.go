// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"
	"testing"
	"time"

	"homenode/internal/unit"
)

// The clock for moving reads the shared time and leaves the model as it is.
func TestMigrateClock(t *testing.T) {
	m := &Model{page: make([]byte, 4096), path: "fake"}
	if _, _, err := m.MigrateClock(); err == nil {
		t.Error("a model of 0 MHz has a clock")
	}
	m.word(OffMHz).Store(50)
	clock, note, err := m.MigrateClock()
	if clock != nil || err != nil || !strings.Contains(note, "times mean little") {
		t.Errorf("off: %v, %q, %v", clock, note, err)
	}
	m.word(offApplied).Store(uint64(On))
	clock, note, err = m.MigrateClock()
	if err != nil || note != "" || clock.How() != unit.HowModelled || clock.Name() != "model clock of the lab, 50 cycles a µs" {
		t.Fatalf("%v, %q, %v", clock, note, err)
	}
	for cycles, want := range map[uint64]time.Duration{0: 0, 1: 20, 50: 1000, 50e6: time.Second, 50e6*86400*365*100 + 25: 100*365*24*time.Hour + 500} {
		m.word(OffCycles).Store(cycles)
		if got := clock.Now(); got != want {
			t.Errorf("%d cycles: %v, want %v", cycles, got, want)
		}
	}
	if m.State() != On || m.word(offState).Load() != 0 {
		t.Error("it switched the model")
	}
}
