// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"homenode/internal/golden"
)

const top = "../../.."

// The offsets that Go uses equal those of the C header.
func TestParityLayout(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: the header cannot be asked")
	}
	exe := filepath.Join(t.TempDir(), "layout")
	if out, err := exec.Command(cc, "-I"+top+"/lab/include", top+"/lab/include/layout.c", "-o", exe).CombinedOutput(); err != nil {
		t.Fatalf("compile layout.c: %v\n%s", err, out)
	}
	out, err := exec.Command(exe).Output()
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, top+"/schema/lab_layout.golden", out)
	lines := strings.Split(string(out), "\n")
	for name, value := range map[string]any{
		"magic_value": fmt.Sprintf("%x", uint64(Magic)), "bytes": Bytes, "magic": OffMagic,
		"mhz": OffMHz, "state": offState, "phase": offPhase, "applied": offApplied, "model_cycles": OffCycles,
		"idle_rate": offIdleRate, "heartbeat": offHeartbeat, "vcpu": offVCPU, "sizeof_vcpu": vcpuBytes, "vcpu.clock": offVCPUClock, "ncpu": offCPUs,
	} {
		if want := fmt.Sprintf("%s %v", name, value); !slices.Contains(lines, want) {
			t.Errorf("Go has %q, the header says otherwise", want)
		}
	}
}

func TestDecodeClock(t *testing.T) {
	page := make([]byte, 2048)
	if _, err := decodeClock(page); err == nil {
		t.Error("a page without the magic was accepted")
	}
}
