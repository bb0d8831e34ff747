// SPDX-License-Identifier: Apache-2.0

package machinetest

import "os"

// Seeds is how many random cases a test tries: a few, or with HOMENODE_SEEDS=all, as
// 'make test-full' has it, as many as the issues ask for.
func Seeds(few, all int) int {
	if os.Getenv("HOMENODE_SEEDS") == "all" {
		return all
	}
	return few
}
