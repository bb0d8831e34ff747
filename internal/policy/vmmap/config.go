// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"fmt"
	"math"
	"time"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// Config holds the matrices, the thresholds and the metric. What does not come from the
// paper is our choice; decision 0020 has the reasons.
type Config struct {
	Metric Metric `yaml:"metric" json:"metric"`
	// Compatible says how bad it is for two classes to share a last-level cache; 0: they
	// may. Symmetric.
	Compatible Compatible `yaml:"compatible" json:"compatible"`
	Benefit    Benefit    `yaml:"benefit" json:"benefit"`
	// Unknown is the class of a workload whose counters do not show one. The default, a
	// sensitive rabbit, is the careful choice: it gets a cache and a node to itself.
	Unknown          Class `yaml:"unknown" json:"unknown"`
	UnknownSensitive bool  `yaml:"unknown_sensitive" json:"unknown_sensitive"`
	Infer            Infer `yaml:"infer" json:"infer"`

	// ReservedCPUs are never given to a VM; the same as actuate's.
	ReservedCPUs set.CPUSet `yaml:"reserved_cpus" json:"reserved_cpus"`

	Reserve  unit.Ratio `yaml:"reserve" json:"reserve"`     // share of a node's memory that stays free; more: fewer VMs fit
	MaxMoves int        `yaml:"max_moves" json:"max_moves"` // VMs that a new configuration may move; more: longer searches
	// Searches bounds the placements that one search tries, StepSearches those of all
	// searches of a Step. Beyond a bound, a search ends with the best so far and examines
	// only the obvious slots.
	Searches     int `yaml:"searches" json:"searches"`
	StepSearches int `yaml:"step_searches" json:"step_searches"`

	Threshold  float64 `yaml:"threshold" json:"threshold"`     // (expected - measured) / expected from which on a VM is affected
	Affected   int     `yaml:"affected" json:"affected"`       // windows in a row that a VM must be affected before it is moved
	Sustained  int     `yaml:"sustained" json:"sustained"`     // windows in which a pace must hold to be expected
	GiveUp     int     `yaml:"give_up" json:"give_up"`         // affected windows without a better place, after which less is expected
	LocalShare float64 `yaml:"local_share" json:"local_share"` // share of its memory that must have followed before it is judged

	// A new mapping pays when its gain exceeds PayRatio × the cost of moving, both over the
	// horizon.
	PayRatio     float64       `yaml:"pay_ratio" json:"pay_ratio"`
	Horizon      time.Duration `yaml:"horizon" json:"horizon"`
	SecondsPerGB float64       `yaml:"seconds_per_gb" json:"seconds_per_gb"` // CPU seconds to move a GB of memory, at least (MAO: 0.65)
	// CoolDown is how long a VM that was moved stays. It doubles with each move within a
	// horizon of the one before, up to Doublings. A refused VM is left alone as long.
	CoolDown  time.Duration `yaml:"cool_down" json:"cool_down"`
	Doublings int           `yaml:"doublings" json:"doublings"`
}

// Metric is the figure by which a VM's performance is judged (Lakew: SM-IPC, SM-MPI).
type Metric string

// The metrics. Of MPI, less is better.
const (
	IPC Metric = "ipc"
	MPI Metric = "mpi"
)

// PerClass has one of something for each class.
type PerClass[T any] struct {
	Sheep  T `yaml:"sheep" json:"sheep"`
	Rabbit T `yaml:"rabbit" json:"rabbit"`
	Devil  T `yaml:"devil" json:"devil"`
}

// of takes a class that is not known for a rabbit's.
func (p PerClass[T]) of(c Class) T { return *p.at(c) }

func (p *PerClass[T]) at(c Class) *T {
	switch c {
	case Sheep:
		return &p.Sheep
	case Devil:
		return &p.Devil
	}
	return &p.Rabbit
}

// ByClass is a figure for each class.
type ByClass = PerClass[float64]

// Compatible is a matrix of classes by classes.
type Compatible = PerClass[ByClass]

// Levels is a figure for each level at which a VM's slowdown may end (Lakew's columns).
type Levels struct {
	Socket float64 `yaml:"socket" json:"socket"` // bad neighbours in its cache
	Node   float64 `yaml:"node" json:"node"`     // memory on other nodes of its server
	Server float64 `yaml:"server" json:"server"` // memory on other servers
}

// Benefit is the value of ending it, of 10.
type Benefit = PerClass[Levels]

// DefaultConfig returns the defaults; decode a file over it.
func DefaultConfig() Config {
	return Config{
		Metric: IPC,
		// From the definitions (we do not have the paper's matrix): a sheep neither slows
		// others nor is slowed. Rabbits take from each other the cache that makes them
		// fast, and a devil takes all of it from them. Devils have no use for the cache,
		// but share one memory below it.
		Compatible: Compatible{Rabbit: ByClass{Rabbit: 1, Devil: 2}, Devil: ByClass{Rabbit: 2, Devil: 1}},
		// Lakew et al., the benefit matrix.
		Benefit: Benefit{Sheep: Levels{1, 5, 8}, Rabbit: Levels{4, 7, 9}, Devil: Levels{1, 6, 9}},
		Unknown: Rabbit, UnknownSensitive: true, Infer: defaultInfer(),
		MaxMoves: 3, Searches: 2000, StepSearches: 4000,
		Threshold: 0.15, Affected: 3, Sustained: 3, GiveUp: 60, LocalShare: 0.9,
		PayRatio: 2, Horizon: 10 * time.Minute, SecondsPerGB: 0.65,
		CoolDown: time.Minute, Doublings: 5,
	}
}

// Validate names the setting that is out of range, and its range, in one sentence.
func (c Config) Validate() error {
	switch {
	case c.Metric != IPC && c.Metric != MPI:
		return fmt.Errorf("animal: metric is %q: want ipc or mpi", c.Metric)
	case c.Unknown != Sheep && c.Unknown != Rabbit && c.Unknown != Devil:
		return fmt.Errorf("animal: unknown is %q: want sheep, rabbit or devil", c.Unknown)
	case !(c.Reserve >= 0 && c.Reserve < 1):
		return fmt.Errorf("animal: reserve is %v: it must be at least 0 and below 1", float64(c.Reserve))
	case c.MaxMoves < 0 || c.Searches < 1 || c.StepSearches < 1:
		return fmt.Errorf("animal: max_moves is %d, searches %d, step_searches %d: they must be at least 0, 1 and 1", c.MaxMoves, c.Searches, c.StepSearches)
	case c.Affected < 1 || c.Sustained < 1 || c.GiveUp < c.Affected:
		return fmt.Errorf("animal: affected is %d, sustained %d, give_up %d: they must be at least 1, 1 and affected", c.Affected, c.Sustained, c.GiveUp)
	case c.Horizon <= 0 || c.CoolDown < 0 || c.Doublings < 0 || c.Doublings > mostDoublings:
		return fmt.Errorf("animal: horizon is %v, cool_down %v, doublings %d: want a positive one, one not negative, and 0 to %d", c.Horizon, c.CoolDown, c.Doublings, mostDoublings)
	}
	return c.validateFigures()
}

// mostDoublings keeps a pause within a time.Duration.
const mostDoublings = 16

func (c Config) validateFigures() error {
	figures := []struct {
		name     string
		is, most float64
	}{{"threshold", c.Threshold, 1}, {"local_share", c.LocalShare, 1}, {"pay_ratio", c.PayRatio, math.MaxFloat64}, {"seconds_per_gb", c.SecondsPerGB, math.MaxFloat64}}
	for _, a := range []Class{Sheep, Rabbit, Devil} {
		for _, b := range []Class{Sheep, Rabbit, Devil} {
			if c.Compatible.of(a).of(b) != c.Compatible.of(b).of(a) {
				return fmt.Errorf("animal: compatible is %v for %s and %s, and %v the other way round: it must be the same", c.Compatible.of(a).of(b), a, b, c.Compatible.of(b).of(a))
			}
			figures = append(figures, struct {
				name     string
				is, most float64
			}{fmt.Sprintf("compatible of %s and %s", a, b), c.Compatible.of(a).of(b), math.MaxFloat64})
		}
		l := c.Benefit.of(a)
		if !(l.Socket >= 0 && l.Socket <= l.Node && l.Node <= l.Server && l.Server <= 10) {
			return fmt.Errorf("animal: benefit of %s is %v, %v, %v: it must ascend from 0 to 10 at most", a, l.Socket, l.Node, l.Server)
		}
	}
	for _, f := range figures {
		if !(f.is >= 0 && f.is <= f.most) {
			return fmt.Errorf("animal: %s is %v: it must not be negative, nor more than %g", f.name, f.is, f.most)
		}
	}
	return c.Infer.validate()
}
