// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strconv"

	"homenode/internal/unit"
)

// deviceCodes are a class and subclass for each class: a Machine does not know what
// exactly the device was. osdevTypes are hwloc's block, network, GPU and coprocessor.
func deviceCodes() map[DeviceClass]string {
	return map[DeviceClass]string{Storage: "0100", Network: "0200", GPU: "0300", Accelerator: "1200", CXLMemory: "0502"}
}

func osdevTypes() map[DeviceClass]string {
	return map[DeviceClass]string{Storage: "0", Network: "2", GPU: "1", Accelerator: "5", CXLMemory: "0"}
}

// hosts prints the devices of an object. Those with bridges are below a host bridge, one for
// each bus that the first of their bridges is on.
func (p *hwlocPrinter) hosts(depth int, devices []Device) {
	p.grouped(depth, devices, 0, func(d Device) string { return fmt.Sprint(busOf(d.Bridges[0])) }, func(below []Device) {
		p.bridge(depth, [2]string{"bridge_type", "0-1"}, [2]string{"depth", "0"}, [2]string{"bridge_pci", buses(below, 0)})
		p.below(depth+1, 0, below)
		p.line(depth, "</object>")
	})
}

// below prints devices that have this many bridges in common.
func (p *hwlocPrinter) below(depth, common int, devices []Device) {
	p.grouped(depth, devices, common, func(d Device) string { return d.Bridges[common] }, func(below []Device) {
		p.bridge(depth, [][2]string{
			{"bridge_type", "1-1"}, {"depth", strconv.Itoa(common + 1)}, {"bridge_pci", buses(below, common+1)},
			{"pci_busid", below[0].Bridges[common]}, {"pci_type", "0604 [0000:0000] [0000:0000] 00"}, {"pci_link_speed", "0.000000"},
		}...)
		p.below(depth+1, common+1, below)
		p.line(depth, "</object>")
	})
}

func (p *hwlocPrinter) bridge(depth int, attrs ...[2]string) {
	p.last++
	p.open(depth, "object", false, append([][2]string{{"type", "Bridge"}, {"gp_index", strconv.Itoa(p.last)}}, attrs...)...)
}

// grouped prints devices that have only the common bridges, and passes the others on by
// what via says of them.
func (p *hwlocPrinter) grouped(depth int, devices []Device, common int, via func(Device) string, group func([]Device)) {
	for len(devices) > 0 {
		if len(devices[0].Bridges) == common {
			p.device(depth, devices[0])
			devices = devices[1:]
			continue
		}
		var same, rest []Device
		for _, d := range devices {
			if len(d.Bridges) > common && via(d) == via(devices[0]) {
				same = append(same, d)
			} else {
				rest = append(rest, d)
			}
		}
		group(same)
		devices = rest
	}
}

// busOf is the domain and bus of an address.
func busOf(address string) [2]uint32 {
	a, _ := parsePCIAddress(address)
	return [2]uint32{a[0], a[1]}
}

// buses are the domain and the buses below a bridge, by the devices that are there and the
// bridges on the way to them. Those of another domain (behind a VMD) are left out.
func buses(devices []Device, common int) string {
	var all [][2]uint32
	for _, d := range devices {
		for _, address := range slices.Concat(d.Bridges[common:], []string{d.Address}) {
			all = append(all, busOf(address))
		}
	}
	low, high := all[0][1], all[0][1]
	for _, bus := range all {
		if bus[0] == all[0][0] {
			low, high = min(low, bus[1]), max(high, bus[1])
		}
	}
	return fmt.Sprintf("%04x:[%02x-%02x]", all[0][0], low, high)
}

func (p *hwlocPrinter) device(depth int, d Device) {
	p.last++
	p.devices[d.Address] = "PCIDev:" + strconv.Itoa(p.last)
	kind := fmt.Sprintf("%s [%04x:%04x] [0000:0000] 00", deviceCodes()[d.Class], d.Vendor, d.Model)
	p.open(depth, "object", false, [][2]string{
		{"type", "PCIDev"}, {"gp_index", strconv.Itoa(p.last)}, {"pci_busid", d.Address},
		{"pci_type", kind}, {"pci_link_speed", "0.000000"},
	}...)
	for i, name := range d.Names {
		memory := unit.None[unit.Bytes]()
		if i == 0 {
			memory = d.Memory
		}
		p.devices[name] = p.named(depth+1, name, osdevTypes()[d.Class], func() { p.kib(depth+2, "CXLRAMSize", memory) })
	}
	p.line(depth, "</object>")
}

// named prints a name that the kernel has for a device, with its infos, and returns the
// reference to it.
func (p *hwlocPrinter) named(depth int, name, kind string, infos func()) string {
	p.last++
	reference := strconv.Itoa(p.last)
	p.open(depth, "object", false, [][2]string{{"type", "OSDev"}, {"gp_index", reference}, {"name", name}, {"osdev_type", kind}}...)
	infos()
	p.line(depth, "</object>")
	return "OSDev:" + reference
}

func (p *hwlocPrinter) kib(depth int, name string, size unit.Opt[unit.Bytes]) {
	if b, ok := size.Get(); ok {
		p.info(depth, name, strconv.FormatInt(int64(b/unit.KiB), 10)+"KiB")
	}
}

// What hwloc has no word for, in infos that it carries along: the node and the driver of a
// dax device. daxKind stands for hwloc's SPM or NVM, which a Machine does not tell apart.
const (
	daxNodeInfo   = "HomenodeDAXNode"
	daxDriverInfo = "HomenodeDAXDriver"
	daxKind       = "unknown"
)

// dax prints a device of the dax bus, which hwloc takes for a block device.
func (p *hwlocPrinter) dax(depth int, d DAX) {
	p.named(depth, d.Name, osdevTypes()[Storage], func() {
		p.info(depth+1, "DAXType", daxKind)
		p.kib(depth+1, "Size", d.Size)
		if node, ok := d.Node.Get(); ok {
			p.info(depth+1, daxNodeInfo, strconv.Itoa(node))
		}
		if d.Driver != "" {
			p.info(depth+1, daxDriverInfo, d.Driver)
		}
	})
}
