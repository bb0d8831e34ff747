// SPDX-License-Identifier: Apache-2.0

package event

import (
	"errors"
	"fmt"
	"regexp"
	"sync"
)

// Controllers says how the PMUs of a CPU's memory controllers count. They count for
// everything that uses the memory, never for a task.
type Controllers struct {
	PMU string `json:"pmu"` // in sysfs, without the number of the controller: "uncore_imc"

	// Sums of events. Where reads cannot be told from writes, only All has any.
	Reads  []ControllerEvent `json:"reads"`
	Writes []ControllerEvent `json:"writes"`
	All    []ControllerEvent `json:"all"`
	// Near: one PMU counts for each node with CPUs and not for nodes without, so that
	// nodes without CPUs are no obstacle to telling whose counts these are.
	Near bool `json:"near"`
	// Clusters say which node of a package a controller serves where the package has
	// several (sub-NUMA clustering): by the number of its nodes, for each controller by the
	// number in its PMU's name, the position among the package's nodes, ascending. No other
	// division is known.
	Clusters map[int][]int `json:"clusters"`
	Note     string        `json:"note"` // what is left out
}

// ControllerEvent is an event of such a PMU.
type ControllerEvent struct {
	Name string `json:"name"` // the vendor's
	// Terms are in sysfs' words, whose bits the PMU's format folder gives:
	// "event=0x05,umask=0xcf". None: sysfs names the event itself.
	Terms string `json:"terms"`
	Bytes int    `json:"bytes"` // that one count stands for; in a file 0 is 64
}

// SysfsControllers are those of a CPU without an entry: Intel's, as sysfs names them.
var SysfsControllers = Controllers{PMU: "uncore_imc",
	Reads:  []ControllerEvent{{Name: "cas_count_read", Bytes: 64}},
	Writes: []ControllerEvent{{Name: "cas_count_write", Bytes: 64}}}

// Primary is what is counted in any case: reads, or all.
func (c Controllers) Primary() []ControllerEvent {
	if len(c.Reads) > 0 {
		return c.Reads
	}
	return c.All
}

// forms are compiled when the first table with controllers is read: most starts of homenode read
// none.
var forms = sync.OnceValue(func() (f struct{ pmu, name, terms *regexp.Regexp }) {
	f.pmu = regexp.MustCompile(`^[a-z][a-z0-9_]{1,39}$`)
	f.name = regexp.MustCompile(`^[A-Za-z0-9_.]{1,80}$`)
	f.terms = regexp.MustCompile(`^[a-z]+=0x[0-9a-f]{1,8}(,[a-z]+=0x[0-9a-f]{1,8}){0,3}$`)
	return f
})

// check completes what a file says, and refuses what cannot be.
func (c Controllers) check() error {
	for _, events := range [][]ControllerEvent{c.Reads, c.Writes, c.All} {
		for i := range events {
			if err := events[i].check(); err != nil {
				return err
			}
		}
	}
	for nodes, of := range c.Clusters {
		if nodes < 2 || len(of) > 64 || !divided(of, nodes) {
			return fmt.Errorf("clusters: %d nodes, controllers of %v: want at least two nodes, each with as many controllers", nodes, of)
		}
	}
	switch {
	case !forms().pmu.MatchString(c.PMU):
		return fmt.Errorf("pmu: %.40q: want a name as uncore_imc", c.PMU)
	case len(c.All) > 0 && len(c.Reads)+len(c.Writes) > 0 || len(c.Primary()) == 0:
		return errors.New("want reads, or all where they cannot be told from writes")
	}
	return nil
}

// divided says that each of the nodes has the same number of controllers.
func divided(of []int, nodes int) bool {
	count := map[int]int{}
	for _, node := range of {
		count[node]++
	}
	for node := range nodes {
		if count[node] == 0 || count[node]*nodes != len(of) {
			return false
		}
	}
	return len(count) == nodes
}

func (e *ControllerEvent) check() error {
	if e.Bytes == 0 {
		e.Bytes = 64
	}
	if !forms().name.MatchString(e.Name) || e.Terms != "" && !forms().terms.MatchString(e.Terms) || e.Bytes < 1 || e.Bytes > 4096 {
		return fmt.Errorf("%.40q, %.80q, %d bytes: want a name, terms as event=0x05,umask=0xcf, and 1 to 4096 bytes", e.Name, e.Terms, e.Bytes)
	}
	return nil
}
