// SPDX-License-Identifier: Apache-2.0

// Package host is this host for who watches it and acts by hand: windows, one a
// period, and what is wished for as steps.
//
//	Reader ─▶ Window ─▶ the screen ─▶ Plan (a dry run), Apply ─▶ actuate ─▶ journal ─▶ owners
//
// It acts as the agent does: wishes become steps by actuate, and the journal stands
// before each. Not for: deciding.
package host
