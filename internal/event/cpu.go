// SPDX-License-Identifier: Apache-2.0

package event

import (
	"fmt"
	"strconv"
	"strings"
)

// CPU is what /proc/cpuinfo and sysfs show of the CPUs of a machine.
type CPU struct {
	Vendor                  string // x86: "GenuineIntel", "AuthenticAMD"
	Family, Model, Stepping int    // x86
	Implementer, Part       int    // Arm, of MIDR_EL1
	PVR                     int    // POWER: the version, which is the PVR's upper half
	Mixed                   bool   // its CPUs are not all of one kind: no table serves them
	Identifier              string // of the PMU, where it has one: "homenode-lab v1"
}

// Match is a kind of CPU that a table serves. For x86 everything but the steppings must
// be given, for Arm both numbers, for POWER the PVR; the lab is identified by its PMU.
type Match struct {
	Vendor            string
	Family            int
	Models            Ranges
	Steppings         Ranges // none = all
	Implementer, Part int
	PVR               int
	Identifier        string
}

// Takes reports whether the CPU is of this kind.
func (m Match) Takes(c CPU) bool {
	switch {
	case m.Identifier != "":
		return strings.Contains(c.Identifier, m.Identifier)
	case c.Mixed:
		return false
	case m.Vendor != "":
		return c.Vendor == m.Vendor && c.Family == m.Family && m.Models.has(c.Model) &&
			(len(m.Steppings) == 0 || m.Steppings.has(c.Stepping))
	}
	return c.Vendor == "" && c.Implementer == m.Implementer && c.Part == m.Part && c.PVR == m.PVR
}

// String is "GenuineIntel family 6 model 0x55 stepping 0-4", "implementer 0x41 part 0xd0c",
// "PVR 0x004e".
func (m Match) String() string {
	switch {
	case m.Identifier != "":
		return "PMU " + m.Identifier
	case m.PVR != 0:
		return fmt.Sprintf("PVR %#04x", m.PVR)
	case m.Vendor == "":
		return fmt.Sprintf("implementer %#x part %#x", m.Implementer, m.Part)
	}
	s := fmt.Sprintf("%s family %d model %s", m.Vendor, m.Family, m.Models.text(true))
	if len(m.Steppings) > 0 {
		s += " stepping " + m.Steppings.text(false)
	}
	return s
}

// Range is from Low to High, both included.
type Range struct{ Low, High int }

// Ranges are ascending and do not touch.
type Ranges []Range

func (r Ranges) has(n int) bool {
	for _, p := range r {
		if p.Low <= n && n <= p.High {
			return true
		}
	}
	return false
}

func (r Ranges) text(hex bool) string {
	number := strconv.Itoa
	if hex {
		number = func(n int) string { return fmt.Sprintf("%#02x", n) }
	}
	var parts []string
	for _, p := range r {
		part := number(p.Low)
		if p.High > p.Low {
			part += "-" + number(p.High)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}

// parseRanges reads "0x6a,0x6c" or "0-4".
func parseRanges(text string) (Ranges, error) {
	var all Ranges
	if text == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		from, to, many := strings.Cut(part, "-")
		if !many {
			to = from
		}
		low, err1 := strconv.ParseUint(from, 0, 16)
		high, err2 := strconv.ParseUint(to, 0, 16)
		if err1 != nil || err2 != nil || low > high {
			return nil, fmt.Errorf("%.20q: want numbers or ranges as 0x30-0x3f, apart by commas", text)
		}
		if n := len(all); n > 0 && int(low) <= all[n-1].High {
			return nil, fmt.Errorf("%.20q: not ascending", text)
		}
		all = append(all, Range{int(low), int(high)})
	}
	return all, nil
}
