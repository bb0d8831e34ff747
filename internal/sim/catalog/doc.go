// SPDX-License-Identifier: Apache-2.0

// Package catalog has the machines and the applications that come with homenode, for
// simulated worlds: machines of the papers, and others with a recorded topology;
// applications of the papers, by name, and any number of others, drawn from a seed, each
// with its true class; and mixes of them.
//
// It is NOT for: reading machines (machine), what an access costs (sim/memsys), or
// inferring what an application is from windows (policy/vmmap).
package catalog
