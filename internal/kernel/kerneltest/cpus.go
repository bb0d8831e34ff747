// SPDX-License-Identifier: Apache-2.0

package kerneltest

import (
	"fmt"
	"maps"
	"slices"
)

const pmus = "/sys/bus/event_source/devices/"

// CPUs are what sysfs and /proc/cpuinfo show of servers of two packages with a node and
// two CPUs each, by the name of the CPU: what tells it, and its PMUs with their format,
// events and caps folders. They are written after the kernel's drivers (arch/x86/events,
// drivers/perf), none was recorded on such a machine.
var CPUs = map[string]func() Files{
	"ice-lake": func() Files { return join(intel(6, 0x6a, 6), imc(2, "event=0x04,umask=0x0f", "event=0x04,umask=0x30")) },
	// Linux 6.1: the memory controllers have no events folder.
	"sapphire-rapids": func() Files { return join(intel(6, 0x8f, 8), imcSPR(2, "", ""), memLoadsAux()) },
	"emerald-rapids":  func() Files { return join(intel(6, 0xcf, 2), imcSPR(1, "", ""), memLoadsAux()) },
	// A kernel that names the first subchannel alone.
	"granite-rapids": func() Files {
		return join(intel(6, 0xad, 1), imcSPR(2, "event=0x05,umask=0xcf", "event=0x05,umask=0xf0"))
	},
	// As many controllers as Granite Rapids has with two or three clusters in a package.
	"granite-rapids-8":  func() Files { return join(intel(6, 0xad, 1), imcSPR(8, "", "")) },
	"granite-rapids-12": func() Files { return join(intel(6, 0xad, 1), imcSPR(12, "", "")) },
	"zen-2": func() Files {
		return join(amd(23, 0x31), ibs(false), pmu("amd_df", 14, "0,2", Files{"format/event": "config:0-7,32-35,59-60", "format/umask": "config:8-15"}))
	},
	"zen-4":       func() Files { return join(amd(25, 0x11), ibs(true), umc("0"), umc("2")) },
	"zen-4-guest": func() Files { return amd(25, 0x11) },
	"neoverse-n2": func() Files { return join(arm(0xd49), spe(), cmn(0, "0"), cmn(1, "2")) },
	// Firmware that does not say where the meshes are: both name CPU 0.
	"neoverse-n2-unplaced": func() Files { return join(arm(0xd49), cmn(0, "0"), cmn(1, "0")) },
	"grace":                func() Files { return join(arm(0xd4f), scf(0, "0"), scf(1, "2")) },
	"power9":               func() Files { return power("POWER9, altivec supported", 0x4e, 51) },
	"power10":              func() Files { return power("POWER10 (architected), altivec supported", 0x80, 59) },
}

// CPUTree is the tree of one of CPUs.
func CPUTree(name string) Files {
	files, ok := CPUs[name]
	if !ok {
		panic(fmt.Sprintf("no CPU %q: there are %v", name, slices.Sorted(maps.Keys(CPUs))))
	}
	return files()
}

func join(all ...Files) Files {
	out := Files{}
	for _, files := range all {
		out.With(files)
	}
	return out
}

// pmu is a PMU's folder; mask is its cpumask, if it has one.
func pmu(name string, typ int, mask string, files Files) Files {
	out := Files{pmus + name + "/type": fmt.Sprintln(typ)}
	if mask != "" {
		out[pmus+name+"/cpumask"] = mask + "\n"
	}
	for path, text := range files {
		out[pmus+name+"/"+path] = text + "\n"
	}
	return out
}

func x86(vendor string, family, model, stepping int) Files {
	return Files{"/proc/cpuinfo": fmt.Sprintf("processor\t: 0\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\nmodel name\t: fake\nstepping\t: %d\n", vendor, family, model, stepping)}
}

func intel(family, model, stepping int) Files {
	return join(x86("GenuineIntel", family, model, stepping), pmu("cpu", 4, "", Files{
		"format/event": "config:0-7", "format/umask": "config:8-15", "format/cmask": "config:24-31",
		"format/offcore_rsp": "config1:0-63", "format/ldlat": "config1:0-15",
		"events/mem-loads": "event=0xcd,umask=0x1,ldlat=3", "caps/max_precise": "3",
	}))
}

func memLoadsAux() Files {
	return Files{pmus + "cpu/events/mem-loads-aux": "event=0x03,umask=0x82\n"}
}

// imc are so many memory controllers of each package; without reads there are no events.
func imc(n int, reads, writes string) Files {
	out := Files{}
	for i := range n {
		files := Files{"format/event": "config:0-7", "format/umask": "config:8-15"}
		if reads != "" {
			files["events/clockticks"], files["events/cas_count_read"], files["events/cas_count_write"] = "event=0x00", reads, writes
		}
		out = join(out, pmu(fmt.Sprintf("uncore_imc_%d", i), 20+i, "0,2", files))
	}
	return join(out, pmu("uncore_imc_free_running_0", 40, "0,2", Files{"format/event": "config:0-7", "events/read": "event=0xff,umask=0x20"}))
}

// imcSPR are those of Sapphire Rapids and later, whose umask has a second range
// (umask_ext4 in arch/x86/events/intel/uncore_snbep.c).
func imcSPR(n int, reads, writes string) Files {
	out := imc(n, reads, writes)
	for i := range n {
		out[pmus+fmt.Sprintf("uncore_imc_%d/format/umask", i)] = "config:8-15,32-55\n"
	}
	return out
}

func amd(family, model int) Files {
	return join(x86("AuthenticAMD", family, model, 1), pmu("cpu", 4, "", Files{"format/event": "config:0-7,32-35", "format/umask": "config:8-15"}))
}

func ibs(zen4 bool) Files {
	files := Files{"format/cnt_ctl": "config:19"}
	if zen4 {
		files["format/l3missonly"], files["caps/zen4_ibs_extensions"] = "config:16", "1"
	}
	return pmu("ibs_op", 11, "", files)
}

// umc is the first memory controller of the package with this CPU: a PMU each, without
// events (arch/x86/events/amd/uncore.c).
func umc(cpu string) Files {
	return pmu("amd_umc_"+cpu, 30, cpu, Files{"format/event": "config:0-7", "format/rdwrmask": "config:8-9"})
}

func arm(part int) Files {
	return Files{"/proc/cpuinfo": fmt.Sprintf("processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: %#x\nCPU revision\t: 0\n\n", part)}
}

func spe() Files {
	return join(Files{"/sys/devices/system/cpu/online": "0-3\n"}, pmu("arm_spe_0", 12, "0-3", Files{
		"format/ts_enable": "config:0", "format/load_filter": "config:33", "format/store_filter": "config:34", "caps/min_interval": "1024",
	}))
}

// power is after show_cpuinfo in arch/powerpc/kernel/setup-common.c.
func power(name string, pvr, high int) Files {
	one := fmt.Sprintf("cpu\t\t: %s\nclock\t\t: 2500.000000MHz\nrevision\t: 2.2 (pvr %04x 1202)\n\n", name, pvr)
	return join(Files{"/proc/cpuinfo": "processor\t: 0\n" + one + "processor\t: 1\n" + one + "timebase\t: 512000000\n"},
		pmu("cpu", 4, "", Files{"format/event": fmt.Sprintf("config:0-%d", high), "format/pmc": "config:16-19", "events/mem-loads": "event=0x34340401e0"}))
}

func cmn(number int, cpu string) Files {
	return pmu(fmt.Sprintf("arm_cmn_%d", number), 50+number, cpu, Files{
		"format/type": "config:0-15", "format/eventid": "config:16-26", "events/hnf_mc_reqs": "type=0x5,eventid=0xd",
	})
}

func scf(socket int, cpu string) Files {
	return pmu(fmt.Sprintf("nvidia_scf_pmu_%d", socket), 60+socket, cpu, Files{
		"format/event": "config:0-63", "events/cmem_rd_data": "event=0x1a5", "events/cmem_wr_total_bytes": "event=0x1db",
	})
}
