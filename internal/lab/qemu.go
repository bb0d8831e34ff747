// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"path/filepath"
	"strings"

	"homenode/internal/lab/model"
	"homenode/internal/machine"
	"homenode/internal/unit"
)

const (
	resultDiskBytes = 64 << 20
	// Larger than any node of a shape, so that its page cache can fill one.
	scratchDiskBytes = 2 << 30
)

// Files of one run, in its directory.
const (
	sharedName  = "shared.bin" // ivshmem
	confName    = "model.conf" // for the plugin
	diskName    = "results.img"
	scratchName = "scratch.img" // empty and sparse: for file systems and page cache
	extraName   = "extra.cpio"  // second initramfs archive
	socketName  = "port.sock"
	consoleName = "console.log"
	logName     = "qemu.log" // output of QEMU and the plugin
)

// bootPlan is everything that the QEMU command line depends on.
type bootPlan struct {
	assets Assets
	shape  machine.Shape
	dir    string // of this run
	guest  string // Options.Guest
	cgroup string // "v1" or "v2"
	shell  bool   // a prompt on this terminal instead of the server
	flat   bool   // Options.Flat
	net    bool   // Options.Network
	hmat   bool   // Options.HMAT

	counters    int    // Options.Counters
	personality string // Options.Personality
}

// qemuArgs is QEMU's command line. The node backends come first and in order,
// because the plugin's map of nodes depends on it (lab/plugin/model.c).
func qemuArgs(p bootPlan) []string {
	args := []string{
		"-accel", "tcg,thread=multi,tb-size=512",
		// erms and fsrm would make the kernel copy a byte per step.
		"-cpu", cpuModel(p.shape),
		"-nographic", "-nodefaults", "-no-reboot",
	}
	args = append(args, topologyArgs(p.shape, p.hmat)...)
	file := func(name string) string { return filepath.Join(p.dir, name) }
	args = append(args,
		"-object", fmt.Sprintf("memory-backend-file,id=shared,size=%d,mem-path=%s,share=on", model.Bytes, file(sharedName)),
		"-device", "ivshmem-plain,memdev=shared",
		"-plugin", fmt.Sprintf("%s,shm=%s,conf=%s%s", p.assets.Plugin, file(sharedName), file(confName), offOption(p)),
		"-drive", "file="+file(diskName)+",format=raw,if=none,id=results",
		"-device", "virtio-blk-pci,drive=results",
		"-device", "virtio-serial-pci",
		"-chardev", "socket,id=port,path="+file(socketName)+",server=on,wait=off",
		"-device", "virtserialport,chardev=port,name="+portName,
	)
	args = append(args, nodeDevices(p, file(scratchName))...)
	if p.guest == Debian {
		args = append(args, debianArgs(p)...)
	}
	args = append(args,
		"-kernel", p.assets.Kernel,
		"-initrd", file("initrd.cpio"),
	)
	mode, serial := "serve", "file:"+file(consoleName)
	if p.shell {
		mode, serial = "shell", "mon:stdio"
	}
	cmdline := []string{
		"console=ttyS0", "quiet", "panic=-1", "tsc=reliable", "clocksource=tsc",
		"idle=halt", // TCG's mwait spins
		"nokaslr", "mitigations=off", "nowatchdog", "homenode.cgroup=" + p.cgroup, "homenode.mode=" + mode,
		// A block translated at one address also runs at others, so samples of
		// programs that lie elsewhere each time would have wrong addresses.
		"norandmaps",
		// The kernel's tests of its ciphers take 18 s of the guest's clock.
		"cryptomgr.notests",
	}
	if p.counters > 0 {
		cmdline = append(cmdline, fmt.Sprintf("homenode.counters=%d", p.counters))
	}
	if p.personality != "" {
		cmdline = append(cmdline, "homenode.personality="+p.personality)
	}
	if p.flat {
		cmdline = append(cmdline, flatArg)
	}
	if p.guest == Debian {
		cmdline = append(cmdline, "homenode.root="+Debian)
	}
	return append(args, "-serial", serial, "-append", strings.Join(cmdline, " "))
}

// offOption makes some guests faster machines while the model is off. Debian's systemd
// has time-outs of 90 s by the guest's clock, for hundreds of programs. An interactive
// guest runs in real time, and its boot takes 39 s of a CPU of 50 MHz.
func offOption(p bootPlan) string {
	if p.guest == Debian || p.shell {
		return ",off=8"
	}
	return ""
}

// nodeDevices are a scratch disk and a source of random numbers next to the last
// node with CPUs: a device gets a node from a bus of its own (pxb). They come
// after all other devices, which would otherwise be put on that bus. Reading
// /dev/hwrng causes interrupts whose affinity can be set; those of the disk are
// the kernel's.
func nodeDevices(p bootPlan, scratch string) []string {
	disk := []string{"-drive", "file=" + scratch + ",format=raw,if=none,id=scratch"}
	if p.hmat { // q35 has another device for this bus
		return append(disk, "-device", "virtio-blk-pci,drive=scratch", "-device", "virtio-rng-pci")
	}
	return append(disk,
		"-device", fmt.Sprintf("pxb,id=near,bus_nr=128,numa_node=%d", deviceNode(p.shape)),
		"-device", "virtio-blk-pci,drive=scratch,bus=near",
		"-device", "virtio-rng-pci,bus=near")
}

func deviceNode(s machine.Shape) (last int) {
	for i, n := range s.Nodes {
		if !n.CPUs.IsEmpty() {
			last = i
		}
	}
	return last
}

// cpuModel is QEMU's. Its vendor is AMD, but only with Intel as the vendor does it
// tell the guest's kernel which CPUs share a core (CPUID leaf 11).
func cpuModel(s machine.Shape) string {
	model := "max,-erms,-fsrm"
	if s.Threads > 1 {
		model += ",vendor=GenuineIntel"
	}
	return model
}

// flatArg hides the nodes from the guest's kernel; the model keeps them.
const flatArg = "numa=off"

func topologyArgs(s machine.Shape, hmat bool) []string {
	var total unit.Bytes
	cpus := 0
	var args []string
	for i, n := range s.Nodes {
		total += n.Memory
		cpus += n.CPUs.Len()
		args = append(args, "-object", fmt.Sprintf("memory-backend-ram,id=m%d,size=%d", i, int64(n.Memory)))
	}
	for i, n := range s.Nodes {
		node := fmt.Sprintf("node,nodeid=%d,memdev=m%d", i, i)
		for cpu := range n.CPUs.All() {
			node += fmt.Sprintf(",cpus=%d", cpu)
		}
		if hmat {
			node += fmt.Sprintf(",initiator=%d", initiator(s, i))
		}
		args = append(args, "-numa", node)
	}
	for i, row := range s.Distances {
		for j, d := range row {
			args = append(args, "-numa", fmt.Sprintf("dist,src=%d,dst=%d,val=%d", i, j, d))
		}
	}
	if hmat {
		args = append(args, hmatArgs(s)...)
	}
	return append([]string{
		"-m", fmt.Sprintf("%dM", int64(total)>>20),
		// One package for each core: the scheduler's domains then follow the
		// nodes alone, whatever their sizes.
		"-smp", fmt.Sprintf("%d,sockets=%d,cores=1,threads=%d", cpus, cpus/max(1, s.Threads), max(1, s.Threads)),
	}, args...)
}
