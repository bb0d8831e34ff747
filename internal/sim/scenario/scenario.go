// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"time"

	"homenode/internal/actuate"
	"homenode/internal/policy/mao"
	"homenode/internal/sim"
	"homenode/internal/sim/linux"
)

// Scenario is the content of a file.
type Scenario struct {
	Schema  int     `yaml:"schema"`
	Name    string  `yaml:"name"`
	About   string  `yaml:"about"`
	Machine Machine `yaml:"machine"`
	// Period is the length of a window, Step the world's step of time (0: the period, at
	// most 1 s).
	Period time.Duration `yaml:"period"`
	Step   time.Duration `yaml:"step"`
	Lasts  time.Duration `yaml:"lasts"` // "72h"
	// Warmup is left out of every figure, except the counts of what was done (Run).
	Warmup    time.Duration  `yaml:"warmup"`
	Clock     time.Duration  `yaml:"clock"` // hour of the day at the start
	Seeds     []uint64       `yaml:"seeds"`
	Linux     linux.Settings `yaml:"linux"`
	Arms      []Arm          `yaml:"arms"`
	Against   string         `yaml:"against"` // the arm that others are compared with; "": the first
	Workloads []sim.Spec     `yaml:"workloads"`
	MAO       mao.Config     `yaml:"mao"`     // for arms without settings of their own
	Actuate   actuate.Config `yaml:"actuate"` // for all arms that act
	Paper     []Claim        `yaml:"paper"`
}

// Machine names the machine: one of Shape, Tree and Builtin, and a profile for any of them.
// Files are relative to the scenario's.
type Machine struct {
	Shape   string `yaml:"shape"`   // a shape file of the lab
	Tree    string `yaml:"tree"`    // a recorded tree's directory
	Builtin string `yaml:"builtin"` // see catalog.Machines
	Profile string `yaml:"profile"` // from 'homenode bench'
}

// Arm is one side of a comparison.
type Arm struct {
	Name   string `yaml:"name"`
	About  string `yaml:"about"`
	Policy string `yaml:"policy"` // see Policies
	// Linux is settings of this arm only, e.g. NUMA balancing.
	NUMABalancing *bool       `yaml:"numa_balancing"`
	MAO           *mao.Config `yaml:"mao"`
}
