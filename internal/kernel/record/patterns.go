// SPDX-License-Identifier: Apache-2.0

package record

// rule names files to save, by a path in which a "*" stands for the rest. A path that
// ends in "/" is a directory, and only its name counts.
type rule struct {
	path   string
	filter filter
}

const (
	cpu  = "sys/devices/system/cpu/"
	node = "sys/devices/system/node/"
	pci  = "sys/bus/pci/devices/"
	kfd  = "sys/class/kfd/kfd/topology/nodes/"
)

// rules is all that is saved. Before you add a line: can the file identify its owner,
// the host, or a single part of it? The proc and sysfs files are described in
// Documentation/ABI and Documentation/filesystems/proc.rst.
var rules = []rule{
	{cpu + "{online,offline,possible,present,kernel_max}", numbers},
	{cpu + "smt/{active,control}", words},
	{cpu + "cpu#/", nil},
	{cpu + "cpu#/{online,cpu_capacity}", numbers},
	{cpu + "cpu#/node#/", nil},
	{cpu + "cpu#/topology/{core_id,die_id,cluster_id,physical_package_id,book_id,drawer_id}", numbers},
	{cpu + "cpu#/topology/{core_cpus,die_cpus,cluster_cpus,package_cpus,book_cpus,drawer_cpus}", numbers},
	{cpu + "cpu#/topology/{core_cpus_list,die_cpus_list,cluster_cpus_list,package_cpus_list}", numbers},
	{cpu + "cpu#/topology/{thread_siblings,thread_siblings_list,core_siblings,core_siblings_list,book_siblings,drawer_siblings}", numbers},
	{cpu + "cpu#/cache/index#/{level,id,size,shared_cpu_list,shared_cpu_map}", numbers},
	{cpu + "cpu#/cache/index#/{coherency_line_size,number_of_sets,physical_line_partition,ways_of_associativity}", numbers},
	{cpu + "cpu#/cache/index#/type", words},
	{node + "{online,possible,has_cpu,has_memory,has_normal_memory,has_generic_initiator}", numbers},
	{node + "node#/", nil},
	{node + "node#/{cpulist,cpumap,distance}", numbers},
	{node + "node#/{meminfo,numastat,vmstat}", counters},
	{node + "node#/hugepages/hugepages-*/{nr_hugepages,free_hugepages,surplus_hugepages}", numbers},
	{"sys/kernel/mm/hugepages/hugepages-*/nr_hugepages", numbers},
	{"sys/devices/{cpu_core,cpu_atom,cpu_lowpower}/cpus", numbers},
	{"sys/bus/dax/devices/dax*/{size,target_node}", numbers},
	{"sys/bus/cxl/devices/mem#/{ram,pmem}/size", numbers},
	{kfd + "#/properties", kfdProperties},
	{kfd + "#/io_links/#/properties", kfdProperties},
	{node + "node#/access#/initiators/{read_bandwidth,read_latency,write_bandwidth,write_latency}", numbers},
	{node + "node#/access#/initiators/node#/", nil},
	{node + "node#/access#/targets/node#/", nil},
	{node + "node#/memory_side_cache/index#/{indexing,line_size,size,write_policy}", numbers},
	{"sys/devices/virtual/memory_tiering/memory_tier#/nodelist", numbers},
	{pci + "@/{class,vendor,device,numa_node,local_cpulist,local_cpus}", numbers},
	{pci + "@/net/*/", nil},
	{pci + "@/infiniband/*/", nil},
	{pci + "@/nvme/nvme#/", nil},
	{pci + "@/nvme/nvme#/nvme*/", nil},
	{pci + "@/drm/{card#,renderD#}/", nil},
	{pci + "@/accel/accel#/", nil},
	{pci + "@/virtio#/net/*/", nil},
	{pci + "@/virtio#/block/*/", nil},
	{pci + "@/block/*/", nil},
	{"sys/kernel/mm/transparent_hugepage/{enabled,defrag}", words},
	{"sys/kernel/mm/numa/demotion_enabled", words},
	{"proc/sys/kernel/numa_balancing", words},
	{"proc/sys/kernel/osrelease", version},
	{"proc/sys/vm/zone_reclaim_mode", numbers},
	{"proc/{meminfo,vmstat,zoneinfo}", counters},
	{"proc/cpuinfo", cpuinfo},
	{"proc/driver/nvidia/gpus/@/numa_status", counters},
	{noFilePath, noFile},
}
