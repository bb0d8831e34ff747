// SPDX-License-Identifier: Apache-2.0

// Package exit has the exit codes that errors carry to where a program ends. An error
// without one is exit code 1.
//
//	exit.BadInput(err) ─▶ … ─▶ errors.As(err, *exit.Error) ─▶ os.Exit(code)
//
// Not for: printing.
package exit
