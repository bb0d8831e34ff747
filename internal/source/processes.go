// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"homenode/internal/kernel"
)

// PIDs reads a flag's process ids: 12 or 12,34. "" is none.
func PIDs(flag, text string) (pids []int, err error) {
	if text == "" {
		return nil, nil
	}
	for field := range strings.SplitSeq(text, ",") {
		pid, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || pid <= 0 || pid > math.MaxInt32 {
			return nil, fmt.Errorf("%s %q: want process ids like 12 or 12,34", flag, text)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// Processes reads the ids of --pid, or "all".
func Processes(text string) (kernel.Selection, error) {
	if text == "all" {
		return kernel.Selection{All: true}, nil
	}
	ids, err := PIDs("--pid", text)
	if err != nil {
		return kernel.Selection{}, fmt.Errorf("%w, or all", err)
	}
	return kernel.Selection{PIDs: ids}, nil
}
