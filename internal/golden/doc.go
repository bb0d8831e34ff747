// SPDX-License-Identifier: Apache-2.0

// Package golden compares what tests print with files that people have read.
//
//	go test ./internal/some/room -update   writes them anew: read the diff
//
// It is NOT for: product code, or judging anything but bytes.
package golden
