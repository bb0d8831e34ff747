// SPDX-License-Identifier: Apache-2.0

package scenario

import "homenode/internal/sim/memsys"

var builtins = []Builtin{
	{"dual-skylake", "Two sockets of Skylake-SP as in MAO: 2 nodes of 28 cores with 2 threads each and 192 GiB; published figures.", memsys.DualSkylake},
}
