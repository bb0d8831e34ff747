// SPDX-License-Identifier: Apache-2.0

package procfs

import "bytes"

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
