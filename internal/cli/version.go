// SPDX-License-Identifier: Apache-2.0

package cli

// Version is set by the build.
var Version = "unknown"
