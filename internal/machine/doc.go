// SPDX-License-Identifier: Apache-2.0

// Package machine describes a host as an immutable value: its nodes, CPUs, caches and
// SLIT distances, as the kernel shows them or as a shape file of the lab prescribes them.
//
//	/ of a live host ─┐
//	recorded tree    ─┴─▶ ParseSysfs ─▶ Machine ─▶ policies, screens, recordings
//	hwloc's XML ────────▶ ParseHwloc ─▶ Machine ─▶ WriteHwloc ─▶ lstopo
//	lab/shapes/*.yaml ──▶ ParseShape ─▶ Shape ──┬─▶ Machine()
//	                                            ├─▶ Routes()     links from memory to CPU
//	                                            └─▶ ModelConf()  ─▶ lab/plugin
//
// A Machine has only what was read. Everything else is unknown (unit.Opt), never a
// default: node ids may be sparse, a node may lack CPUs or memory, nothing is uniform,
// and distances are directed.
//
// Where it differs from hwloc on purpose is in docs/decisions/0011.
//
// It is NOT for: opening files (ParseSysfs is given an fs.FS), measured
// latencies and bandwidths (a profile), the state of a host at some moment
// (internal/window), or deciding anything.
package machine
