// SPDX-License-Identifier: Apache-2.0

// Package apps has applications for simulated worlds: those of the papers, by name, and any
// number of others, drawn from a seed; each with its true class.
//
// It is NOT for: inferring what an application is from windows (policy/vmmap).
package apps
