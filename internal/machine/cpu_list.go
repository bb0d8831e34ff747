// SPDX-License-Identifier: Apache-2.0

package machine

import "homenode/internal/set"

// parseCPUList reads
//
//	/sys/devices/system/cpu/online           0-15,88-103
//	/sys/devices/system/node/node1/cpulist   1,3,5,7
//	/sys/devices/system/cpu/cpu1/topology/core_cpus_list, …/cache/index0/shared_cpu_list
//
// Unit: ids of logical CPUs. cpu/online since 2.6.26, node cpulist since
// 2.6.25, shared_cpu_list since 2.6.28. A CPU-less node's list is empty. After
// hot-unplug a node's list holds online CPUs only.
func parseCPUList(text string) (set.CPUSet, error) { return set.ParseCPUs(text) }

// parseCPUMap reads
//
//	/sys/devices/system/node/node1/cpumap    00000000,0000ff00
//	/sys/devices/system/cpu/cpu1/topology/thread_siblings
//
// Unit: one bit per logical CPU, hexadecimal, highest first. Since 2.6.0; older
// kernels have only this one.
func parseCPUMap(text string) (set.CPUSet, error) { return set.ParseCPUMask(text) }

// parseNodeList reads
//
//	/sys/devices/system/node/online          0-2,33-34,45,72-73
//	/sys/devices/system/node/possible        0-7
//
// Unit: node ids. Since 2.6.24.
func parseNodeList(text string) (set.NodeSet, error) { return set.ParseNodes(text) }

// parseOnline reads
//
//	/sys/devices/system/cpu/cpu1/online   1
//
// ia64 kernels have the file, empty, for CPUs that cannot be switched off.
func parseOnline(text string) (bool, error) {
	switch text {
	case "0":
		return false, nil
	case "1", "":
		return true, nil
	}
	return false, fieldError(1, 1, text)
}
