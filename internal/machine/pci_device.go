// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/set"
	"homenode/internal/unit"
)

const pciDir = "sys/bus/pci/devices"

// parsePCINumber reads
//
//	/sys/bus/pci/devices/0000:3b:00.0/class    0x020000
//	/sys/bus/pci/devices/0000:3b:00.0/vendor   0x8086
//	/sys/bus/pci/devices/0000:3b:00.0/device   0x1521
//
// Unit: PCI ids; class is base class, subclass and programming interface, a byte
// each. Since 2.6.0.
func parsePCINumber(text string) (uint32, error) {
	digits, ok := strings.CutPrefix(text, "0x")
	n, err := strconv.ParseUint(digits, 16, 24)
	if !ok || err != nil || len(digits) != 4 && len(digits) != 6 {
		return 0, fieldError(1, 1, text)
	}
	return uint32(n), nil
}

// classOf is the class that placement cares for of a base class and subclass, 0x0207 (PCI Code
// and ID Assignment 1.15).
func classOf(code uint32) (DeviceClass, bool) {
	switch code {
	case 0x0502:
		return CXLMemory, true
	case 0x0c06: // InfiniBand
		return Network, true
	case 0x0b40: // co-processor
		return Accelerator, true
	}
	switch code >> 8 {
	case 0x01:
		return Storage, true
	case 0x02:
		return Network, true
	case 0x03:
		return GPU, true
	case 0x12:
		return Accelerator, true
	}
	return "", false
}

// parsePCIAddress reads "0000:3b:00.0" (domain, bus, device, function), the name of
// a device's directory. A domain has more than four digits behind a VMD (0x10000).
func parsePCIAddress(text string) (pciAddress, bool) {
	var a pciAddress
	f := strings.FieldsFunc(text, func(r rune) bool { return r == ':' || r == '.' })
	if len(f) != 4 {
		return pciAddress{}, false
	}
	for i, bits := range []int{32, 8, 5, 3} {
		n, err := strconv.ParseUint(f[i], 16, bits)
		if err != nil {
			return pciAddress{}, false
		}
		a[i] = uint32(n)
	}
	if a.String() != text {
		return pciAddress{}, false
	}
	return a, true
}

type pciAddress [4]uint32

func (a pciAddress) String() string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", a[0], a[1], a[2], a[3])
}

// devices lists the PCI devices of pciClasses by address, and the kernel's names
// for them.
func (t *tree) devices(m *Machine) {
	names := map[string][]string{}
	for _, address := range t.names(pciDir) {
		if _, ok := parsePCIAddress(address); !ok {
			continue
		}
		code, _ := load(t, pciDir+"/"+address+"/class", parsePCINumber).Get()
		class, ok := classOf(code >> 8)
		if !ok {
			continue
		}
		if len(m.Devices) == 0 {
			names = t.deviceNames()
		}
		m.Devices = append(m.Devices, t.device(m, address, class, names[address]))
	}
	sortDevices(m.Devices)
}

func sortDevices(devices []Device) {
	slices.SortFunc(devices, func(a, b Device) int {
		x, _ := parsePCIAddress(a.Address)
		y, _ := parsePCIAddress(b.Address)
		return slices.Compare(x[:], y[:])
	})
}

// device reads one device. The kernel reports -1 for one whose firmware gave it no node.
// It then calls every CPU local, or those of a host bridge: they are stored as CPUs, but
// give no node.
func (t *tree) device(m *Machine, address string, class DeviceClass, names []string) Device {
	dir := pciDir + "/" + address
	d := Device{Address: address, Class: class, Names: names}
	d.Vendor = uint16(load(t, dir+"/vendor", parsePCINumber).Or(0))
	d.Model = uint16(load(t, dir+"/device", parsePCINumber).Or(0))
	d.Bridges = t.bridges(address)
	d.Memory = t.cxlMemory(class, names)
	d.CPUs = t.cpuList(dir+"/local_cpus", dir+"/local_cpulist").Or(set.CPUSet{}).Intersect(t.online)
	d.Node = t.id(dir + "/numa_node")
	if node, ok := d.Node.Get(); ok {
		if _, exists := m.nodeIndex(node); !exists {
			t.malformed(dir+"/numa_node", fmt.Errorf("line 1: there is no node %d", node))
			d.Node = unit.None[int]()
		}
	}
	if len(d.Names) == 0 {
		d.Names = t.childNames(dir, class)
	}
	return d
}

// bridges are the PCI bridges on the way to a device, from its link
//
//	/sys/bus/pci/devices/0000:3b:00.0 -> ../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0
//
// or, in an archive of 'homenode record', which has no such link, from the folders that
// it would lead through.
func (t *tree) bridges(address string) []string {
	target, ok := t.link(pciDir + "/" + address)
	if !ok {
		return t.recordedBridges()[address]
	}
	steps := strings.Split(target, "/")
	var list []string
	for _, step := range steps[:len(steps)-1] {
		if _, ok := parsePCIAddress(step); ok {
			list = append(list, step)
		}
	}
	return list
}

// maxBridges bounds how deep bridges nest: a bus has one number of 256.
const maxBridges = 32

// recordedBridges are the bridges of all devices below sys/devices/pci*.
func (t *tree) recordedBridges() map[string][]string {
	if t.bridged != nil {
		return t.bridged
	}
	t.bridged = map[string][]string{}
	var walk func(dir string, above []string)
	walk = func(dir string, above []string) {
		for _, name := range t.names(dir) {
			if _, ok := parsePCIAddress(name); ok && len(above) < maxBridges {
				t.bridged[name] = above
				walk(dir+"/"+name, append(slices.Clip(above), name))
			}
		}
	}
	for _, name := range t.names("sys/devices") {
		if strings.HasPrefix(name, "pci") {
			walk("sys/devices/"+name, nil)
		}
	}
	return t.bridged
}

// cxlMemory is what a CXL memory device has, volatile and persistent, from
//
//	/sys/bus/cxl/devices/mem0/ram/size    0x4000000000
//	/sys/bus/cxl/devices/mem0/pmem/size   0
//
// Unit: bytes. Since 5.12 (drivers/cxl/core/memdev.c).
func (t *tree) cxlMemory(class DeviceClass, names []string) unit.Opt[unit.Bytes] {
	var sum unit.Bytes
	any := false
	for _, name := range names {
		for _, kind := range []string{"ram", "pmem"} {
			if class != CXLMemory || !strings.HasPrefix(name, "mem") {
				continue
			}
			if size, ok := load(t, cxlDir+"/"+name+"/"+kind+"/size", parseCXLSize).Get(); ok {
				sum, any = sum+size, true
			}
		}
	}
	return unit.OptOf(sum, any)
}

const cxlDir = "sys/bus/cxl/devices"

func parseCXLSize(text string) (unit.Bytes, error) {
	digits, ok := strings.CutPrefix(text, "0x")
	base := 16
	if !ok {
		base = 10
	}
	n, err := strconv.ParseUint(digits, base, 63)
	if err != nil || n > uint64(MaxMemory) {
		return 0, fieldError(1, 1, text)
	}
	return unit.Bytes(n), nil
}

// deviceClasses are the directories whose entries name PCI devices, and how such a name
// starts: drm has connectors and render nodes too, cxl has ports and decoders.
var deviceClasses = []struct{ dir, prefix string }{
	{"sys/class/net", ""}, {"sys/class/infiniband", ""}, {"sys/class/block", ""}, {"sys/class/nvme", "nvme"},
	{"sys/class/drm", "card"}, {"sys/class/accel", "accel"}, {cxlDir, "mem"},
}

// deviceNames returns the kernel's names of devices by PCI address, from
//
//	/sys/class/net/eth0        -> ../../devices/pci0000:00/0000:00:01.1/0000:02:00.0/net/eth0
//	/sys/class/block/sda1      -> ../../devices/pci0000:00/0000:00:1f.2/ata1/…/block/sda/sda1
//	/sys/class/nvme/nvme0      -> ../../devices/pci0000:3a/0000:3a:00.0/nvme/nvme0
//
// The last address of the path is the device. Partitions and connectors are left
// out, and an NVMe controller that has a disk.
func (t *tree) deviceNames() map[string][]string {
	names := map[string][]string{}
	for _, class := range deviceClasses {
		for _, name := range t.names(class.dir) {
			if !strings.HasPrefix(name, class.prefix) || strings.Contains(name, "-") && class.prefix == "card" {
				continue
			}
			if address, ok := t.pciParent(class.dir + "/" + name); ok {
				names[address] = append(names[address], name)
			}
		}
	}
	for address := range names {
		names[address] = withoutControllers(names[address])
	}
	return names
}

// pciParent follows a class link, or that of its "device" (before 2.6.25), to the
// PCI device it ends at.
func (t *tree) pciParent(path string) (string, bool) {
	target, ok := t.link(path)
	if !ok {
		target, _ = t.link(path + "/device")
		target += "/x/x" // it ends at the device, a class link two below
	}
	steps := strings.Split(target, "/")
	for i := len(steps) - 1; i >= 0; i-- {
		if _, ok := parsePCIAddress(steps[i]); ok {
			return steps[i], !isPartition(steps)
		}
	}
	return "", false
}

// isPartition knows "…/block/sda/sda1" and "…/nvme0n1/nvme0n1p1".
func isPartition(steps []string) bool {
	if len(steps) < 2 {
		return false
	}
	disk, last := steps[len(steps)-2], steps[len(steps)-1]
	return len(disk) > 0 && len(last) > len(disk) && strings.HasPrefix(last, disk) &&
		isDigits(strings.TrimPrefix(last[len(disk):], "p"))
}

// withoutControllers drops "nvme0" beside "nvme0n1".
func withoutControllers(names []string) []string {
	all := slices.Clone(names)
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(all, func(other string) bool {
			rest, ok := strings.CutPrefix(other, name+"n")
			return ok && strings.HasPrefix(name, "nvme") && isDigits(rest)
		})
	})
	slices.SortFunc(names, cmp.Compare[string])
	return slices.Compact(names)
}

// childNames finds the names in the device's own directory, for trees without sys/class.
// Disks of a controller are several levels down.
func (t *tree) childNames(dir string, class DeviceClass) []string {
	var names []string
	switch class {
	case Network:
		names = append(t.names(dir+"/net"), t.names(dir+"/infiniband")...)
	case Storage:
		for _, controller := range t.names(dir + "/nvme") {
			names = append(names, controller)
			for _, disk := range t.names(dir + "/nvme/" + controller) {
				if rest, ok := strings.CutPrefix(disk, controller+"n"); ok && isDigits(rest) {
					names = append(names, disk)
				}
			}
		}
	case GPU:
		for _, name := range t.names(dir + "/drm") {
			if strings.HasPrefix(name, "card") {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	return withoutControllers(names)
}
