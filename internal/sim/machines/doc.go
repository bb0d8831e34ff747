// SPDX-License-Identifier: Apache-2.0

// Package machines has the machines that come with homenode, for simulated worlds: those of
// the papers, and others with a recorded topology.
//
// It is NOT for: reading machines (machine), or what an access costs (sim/memsys).
package machines
