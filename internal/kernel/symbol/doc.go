// SPDX-License-Identifier: Apache-2.0

// Package symbol names the function that an instruction is in.
//
//	/proc/PID/maps: start, file offset ─┐
//	instruction's address ──────────────┴─▶ offset in the file ──Table──▶ "main.lookup"
//
// It reads the symbol tables of ELF files. It is NOT for: line numbers,
// debug information, demangling, code made at run time.
package symbol
