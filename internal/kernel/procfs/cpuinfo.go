// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"slices"

	"homenode/internal/unit"
)

// CPUModel is what names a CPU for the event tables.
type CPUModel struct {
	Vendor        string // "GenuineIntel", "AuthenticAMD"; "" on other architectures
	Family, Model int
}

// ParseCPUInfo reads the first processor of /proc/cpuinfo as x86 prints it:
//
//	vendor_id	: GenuineIntel
//	cpu family	: 6
//	model		: 85
//
// Other architectures print other fields; then all is zero, which is no error.
func ParseCPUInfo(data []byte) (CPUModel, error) {
	var m CPUModel
	for n, line := range lines(data) {
		key, val, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			if n > 1 {
				break
			}
			continue
		}
		if err := m.set(string(bytes.TrimSpace(key)), bytes.TrimSpace(val)); err != nil {
			return CPUModel{}, malformed("/proc/cpuinfo", n, line, err)
		}
	}
	if m.Vendor == "" {
		return CPUModel{}, nil
	}
	return m, nil
}

func (m *CPUModel) set(key string, val []byte) error {
	var into *int
	switch key {
	case "vendor_id":
		m.Vendor = string(val)
	case "cpu family":
		into = &m.Family
	case "model":
		into = &m.Model
	}
	if into == nil || m.Vendor == "" {
		return nil
	}
	n, err := number(val)
	*into = int(n)
	return err
}

// ParseHypervisorFlag looks for "hypervisor" among the flags of the first
// processor of /proc/cpuinfo, which every x86 hypervisor sets for its guests
// (CPUID 1, ECX bit 31). Unknown where no flags line is: other architectures have
// no such flag.
//
//	flags		: fpu vme … hypervisor lahf_lm
func ParseHypervisorFlag(data []byte) unit.Opt[bool] {
	for _, line := range lines(data) {
		key, val, ok := bytes.Cut(line, []byte(":"))
		if ok && string(bytes.TrimSpace(key)) == "flags" {
			return unit.Some(slices.ContainsFunc(bytes.Fields(val), func(f []byte) bool { return string(f) == "hypervisor" }))
		}
	}
	return unit.None[bool]()
}

// ParseModelName is what the first processor of /proc/cpuinfo calls itself, "" where
// it does not:
//
//	model name	: Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz
func ParseModelName(data []byte) string {
	for _, line := range lines(data) {
		key, val, ok := bytes.Cut(line, []byte(":"))
		if ok && string(bytes.TrimSpace(key)) == "model name" {
			return string(bytes.ToValidUTF8(bytes.TrimSpace(val), []byte("\uFFFD")))
		}
	}
	return ""
}
