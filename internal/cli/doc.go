// SPDX-License-Identifier: Apache-2.0

// Package cli is what the commands of all programs have in common: root command,
// flags, output and its target, and how they end.
//
//	Main ─▶ Root ─▶ a command's RunE ─▶ an error ─▶ Finish ─▶ messages on stderr, exit code
//
// Not for: what any one command does.
package cli
