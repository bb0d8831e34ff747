// SPDX-License-Identifier: Apache-2.0

//go:build reference

package main

import _ "homenode/internal/cli/reference" // the command reference, for the build
