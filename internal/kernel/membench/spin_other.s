// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 && !arm64 && !ppc64le

// A file of assembly lets clock.go declare a function that the runtime has.
