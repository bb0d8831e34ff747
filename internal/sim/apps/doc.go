// SPDX-License-Identifier: Apache-2.0

// Package apps are applications for simulated worlds: those of the papers, by name, and
// as many others as one likes, from a seed; each with what it truly is.
//
// It is NOT for: deciding what an application is from windows (policy/vmmap).
package apps
