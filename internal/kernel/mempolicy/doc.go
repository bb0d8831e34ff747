// SPDX-License-Identifier: Apache-2.0

// Package mempolicy has the kernel's memory policies: names, numbers, and the
// system calls that set them.
//
//	Policy ──Number──▶ mode ─┐
//	NodeSet ──────▶ nodemask ┴─▶ set_mempolicy (a thread), mbind (a mapping)
//
// It is NOT for: choosing a policy (launch, bench), or sentences about why the kernel
// refused one, which depend on earlier checks.
package mempolicy
