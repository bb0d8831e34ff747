// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/event"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// ParseCPUInfo reads the first processor of /proc/cpuinfo as x86 prints it:
//
//	vendor_id	: GenuineIntel
//	cpu family	: 6
//	model		: 85
//	stepping	: 4
//
// and all of them as arm64 prints them, where they can be of several kinds:
//
//	CPU implementer	: 0x41
//	CPU part	: 0xd0c
//
// and of powerpc the version in the PVR, by which the kernel chooses its PMU's driver. The
// name on the line before is that of a mode, where a hypervisor has set one:
//
//	cpu		: POWER9 (architected), altivec supported
//	revision	: 2.3 (pvr 004e 1203)
//
// Other architectures print other fields; then everything is zero, which is no error.
func ParseCPUInfo(data []byte) (event.CPU, error) {
	var m, first event.CPU
	done := func() { // a processor ends
		if first == (event.CPU{}) {
			first = m
		}
		first.Mixed = first.Mixed || m != (event.CPU{}) && (m.Implementer != first.Implementer || m.Part != first.Part || m.PVR != first.PVR)
		m = event.CPU{}
	}
	for n, line := range lines(data) {
		key, val, ok := bytes.Cut(line, []byte(":"))
		if name := string(bytes.TrimSpace(key)); !ok || name == "processor" {
			if done(); first.Vendor != "" {
				return first, nil
			}
		} else if err := setCPU(&m, name, bytes.TrimSpace(val)); err != nil {
			return event.CPU{}, malformed("/proc/cpuinfo", n, line, err)
		}
	}
	done()
	return first, nil
}

func setCPU(m *event.CPU, key string, val []byte) error {
	var into *int
	base := 0
	switch x86 := m.Vendor != ""; {
	case key == "vendor_id":
		m.Vendor = string(val)
	case key == "cpu family" && x86:
		into = &m.Family
	case key == "model" && x86:
		into = &m.Model
	case key == "stepping" && x86 && string(val) != "unknown":
		into = &m.Stepping
	case key == "CPU implementer":
		into = &m.Implementer
	case key == "CPU part":
		into = &m.Part
	case key == "revision":
		_, pvr, ok := bytes.Cut(val, []byte("(pvr "))
		if ok {
			val, _, _ = bytes.Cut(pvr, []byte(" "))
			into, base = &m.PVR, 16
		}
	}
	if into == nil {
		return nil
	}
	n, err := strconv.ParseUint(string(val), base, 31)
	*into = int(n)
	return err
}

// ParseMIDR reads /sys/devices/system/cpu/cpuN/regs/identification/midr_el1 of arm64
// (since 4.8): implementer in bits 24-31, part in 4-15.
//
//	0x00000000410fd0c1
func ParseMIDR(data []byte) (event.CPU, error) {
	text := bytes.TrimSpace(data)
	n, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil {
		return event.CPU{}, malformed("midr_el1", 1, text, err)
	}
	return event.CPU{Implementer: int(n >> 24 & 0xff), Part: int(n >> 4 & 0xfff)}, nil
}

// ParseHypervisorFlag looks for "hypervisor" among the flags of the first processor of
// /proc/cpuinfo, which every x86 hypervisor sets for its guests (CPUID 1, ECX bit 31).
// Unknown without a flags line: other architectures have no such flag.
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

// ReadHypervisor names the hypervisor that this host is a guest of: the hypervisor's own
// name (Xen), else the firmware's name for the machine; "" for none. from is where that is
// known from; "": it is not.
func ReadHypervisor(buf *unix.Buffer, root unix.Root) (name, from string) {
	guest, _ := unix.Parsed(buf, root.Path("/proc/cpuinfo"), func(data []byte) (unit.Opt[bool], error) { return ParseHypervisorFlag(data), nil })
	if is, known := guest.Get(); known && !is {
		return "", "/proc/cpuinfo"
	}
	name = buf.Text(root.Path("/sys/hypervisor/type"))
	if name == "" && guest.Known() {
		name = strings.TrimSpace(buf.Text(root.Path("/sys/class/dmi/id/sys_vendor")) + " " + buf.Text(root.Path("/sys/class/dmi/id/product_name")))
	}
	switch {
	case name != "":
		return name, "/proc/cpuinfo, /sys"
	case guest.Known():
		return "a hypervisor without a name", "/proc/cpuinfo"
	}
	return "", ""
}

// ParseModelName is the name of the first processor in /proc/cpuinfo, "" without one:
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
