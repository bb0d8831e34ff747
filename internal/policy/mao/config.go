// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Strategy says when MAO unbinds.
type Strategy string

// The paper's two strategies. Its production runs B.
const (
	StrategyA Strategy = "A"
	StrategyB Strategy = "B"
)

// Uniform is how alike the replicas of a service on this host are treated; see service.go.
type Uniform string

// From least to most.
const (
	UniformNone   Uniform = "none"   // each for itself, as in the paper's optimizer
	UniformBind   Uniform = "bind"   // bound as a whole or not at all; unbound one by one, by strategy
	UniformAlways Uniform = "always" // also unbound as a whole
)

// Config holds every threshold of the optimizer. Figures of the paper are marked; the
// others are our choice.
type Config struct {
	Strategy Strategy `yaml:"strategy" json:"strategy"` // when it unbinds: A (a node is busy) or B (nodes are unequally busy), as in the paper's production

	// Bind.
	Target            unit.Ratio `yaml:"target" json:"target"`                             // local access ratio of workloads that set none
	MinLoads          uint64     `yaml:"min_loads" json:"min_loads"`                       // with fewer DRAM reads in a window, a ratio says nothing
	MinCPU            float64    `yaml:"min_cpu" json:"min_cpu"`                           // CPUs; an idle workload's ratio says nothing either
	MinGain           unit.Ratio `yaml:"min_gain" json:"min_gain"`                         // the binding must promise this much more local access
	BindAfter         int        `yaml:"bind_after" json:"bind_after"`                     // windows below target in a row; more: calmer and later
	EstimateAfter     int        `yaml:"estimate_after" json:"estimate_after"`             // windows without a count, after which an estimated ratio counts instead
	EstimateBindAfter int        `yaml:"estimate_bind_after" json:"estimate_bind_after"`   // bind_after, where the ratio is an estimate; the larger of both
	EstimateMargin    float64    `yaml:"estimate_margin" json:"estimate_margin"`           // an estimate must be below target by this multiple of its error; 0: any
	MaxBindsPerWindow int        `yaml:"max_binds_per_window" json:"max_binds_per_window"` // 1: see what a bind did before the next
	SettleWindows     int        `yaml:"settle_windows" json:"settle_windows"`             // after these a bound workload should be on target

	// Unbind.
	NodeBusy           unit.Ratio `yaml:"node_busy" json:"node_busy"`                     // A: 80 % (paper); B does not unbind below it either
	ImbalanceThreshold unit.Ratio `yaml:"imbalance_threshold" json:"imbalance_threshold"` // B(1): 10–15 % (paper), in points of utilisation
	HistoryWindows     int        `yaml:"history_windows" json:"history_windows"`         // B(2): length of a node's history
	MinHistory         int        `yaml:"min_history" json:"min_history"`                 // B(2): with fewer windows the P95 means nothing
	QuotaTolerance     float64    `yaml:"quota_tolerance" json:"quota_tolerance"`         // "> 100 % of quota", plus measurement jitter
	SaturatedShare     unit.Ratio `yaml:"saturated_share" json:"saturated_share"`         // share of the bound CPUs, where those are the limit

	// Back-off after an unbind, a refusal or a drift.
	BackoffWindows uint64 `yaml:"backoff_windows" json:"backoff_windows"` // windows without a new bind after an unbind, a refusal or a drift; doubles each time
	BackoffCap     uint64 `yaml:"backoff_cap" json:"backoff_cap"`         // most windows of that
	// ForgetAfter is the number of windows for which an unseen workload is remembered.
	ForgetAfter int `yaml:"forget_after" json:"forget_after"`

	// What a node has left.
	ReservedCPUs     set.CPUSet         `yaml:"reserved_cpus" json:"reserved_cpus"`             // never bound to
	Smoothing        float64            `yaml:"smoothing" json:"smoothing"`                     // weight of the newest window in CPU demand, (0,1]
	HeadroomFactor   float64            `yaml:"headroom_factor" json:"headroom_factor"`         // CPUs needed per CPU of demand
	UnboundWeight    float64            `yaml:"unbound_weight" json:"unbound_weight"`           // share of unbound load that counts as taking CPU from a node; 0: the kernel can move it
	FreeReserve      unit.Ratio         `yaml:"free_reserve" json:"free_reserve"`               // share of a node's memory that stays free
	ReclaimableShare unit.Ratio         `yaml:"reclaimable_share" json:"reclaimable_share"`     // share of a node's page cache that counts as free
	MaxNodes         int                `yaml:"max_nodes" json:"max_nodes"`                     // of one binding; 0: all but one
	NodeBandwidth    map[int]unit.Bytes `yaml:"node_bandwidth" json:"node_bandwidth,omitempty"` // bytes/s that a node's memory serves; absent: no known limit. See WithProfile
	RequireNear      bool               `yaml:"require_near" json:"require_near"`               // only node sets with a node of its devices (Workload.Near), where it has any

	// Wider bindings before memory runs out; see widen.go.
	Widen        bool `yaml:"widen" json:"widen"`                 // widen a binding before its memory runs out
	WidenWindows int  `yaml:"widen_windows" json:"widen_windows"` // windows of the present growth for which there must be memory

	// All replicas of a service are treated alike; see service.go.
	Uniform        Uniform `yaml:"uniform" json:"uniform"`                 // how alike the replicas of a service are treated: none, bind (bound as a whole or not at all) or always (also unbound as a whole)
	UniformWindows int     `yaml:"uniform_windows" json:"uniform_windows"` // always: windows for which some may be bound and others not yet

	// What happens when binding is not enough; see isolate.go.
	Isolate Isolate `yaml:"isolate" json:"isolate"` // keep noisy neighbours to a part of the caches and of the memory bandwidth

	// Room for bound workloads; see room.go.
	MakeRoom bool       `yaml:"make_room" json:"make_room"` // keep unbound workloads off the CPUs that bound ones need
	RoomBusy unit.Ratio `yaml:"room_busy" json:"room_busy"` // share of a node's CPUs in use; above it, bound workloads there lack CPU
	RoomIdle float64    `yaml:"room_idle" json:"room_idle"` // idle CPUs elsewhere at which a workload that made room gets its CPUs back

	// Cost of a node set, each term in [0,1] times its weight; see place.go.
	MoveWeight      float64 `yaml:"move_weight" json:"move_weight"`           // memory to move: paid once
	BandwidthWeight float64 `yaml:"bandwidth_weight" json:"bandwidth_weight"` // others' DRAM traffic there: paid for ever
	CPUWeight       float64 `yaml:"cpu_weight" json:"cpu_weight"`             // others' CPU use there
	CompanyWeight   float64 `yaml:"company_weight" json:"company_weight"`     // share of all bound workloads that are there (they share its LLC)
	DeviceWeight    float64 `yaml:"device_weight" json:"device_weight"`       // distance from the nodes of its devices; 1 is the machine's largest
	UnboundCost     float64 `yaml:"unbound_cost" json:"unbound_cost"`         // weight of unbound CPU use relative to bound, in CPUWeight's term
}

// DefaultConfig returns the defaults; decode a file over it.
func DefaultConfig() Config {
	return Config{
		Strategy: StrategyB,
		Target:   0.9, MinLoads: 1000, MinCPU: 0.05, MinGain: 0.05,
		BindAfter: 1, EstimateAfter: 30, EstimateBindAfter: 6, MaxBindsPerWindow: 1, SettleWindows: 20,
		NodeBusy: 0.80, ImbalanceThreshold: 0.125, HistoryWindows: 512, MinHistory: 20,
		QuotaTolerance: 1.02, SaturatedShare: 0.98,
		BackoffWindows: 8, BackoffCap: 512, ForgetAfter: 3,
		Smoothing: 0.5, HeadroomFactor: 1, FreeReserve: 0.05, ReclaimableShare: 0.5,
		Widen: true, WidenWindows: 6, Uniform: UniformBind, UniformWindows: 20, Isolate: defaultIsolate(),
		MakeRoom: true, RoomBusy: 0.95, RoomIdle: 0.5,
		MoveWeight: 0.25, BandwidthWeight: 1, CPUWeight: 1, CompanyWeight: 0.5, DeviceWeight: 0.5, UnboundCost: 0.5,
	}
}

// Validate names each setting that is out of range, and its range, in one sentence:
// "mao: SETTING is VALUE: …".
func (c Config) Validate() error {
	var errs []error
	if c.Strategy != StrategyA && c.Strategy != StrategyB {
		errs = append(errs, fmt.Errorf("mao: strategy is %q: it must be A or B", c.Strategy))
	}
	if c.Uniform != UniformNone && c.Uniform != UniformBind && c.Uniform != UniformAlways {
		errs = append(errs, fmt.Errorf("mao: uniform is %q: it must be none, bind or always", c.Uniform))
	}
	errs = append(errs, c.shares(), c.counts(), c.factors(), c.Isolate.validate())
	for _, node := range slices.Sorted(maps.Keys(c.NodeBandwidth)) {
		if limit := c.NodeBandwidth[node]; limit <= 0 {
			errs = append(errs, fmt.Errorf("mao: node_bandwidth.%d is %d: it must be a positive number of bytes per second", node, int64(limit)))
		}
	}
	return errors.Join(errs...)
}

func (c Config) shares() error {
	var errs []error
	for _, s := range []struct {
		name  string
		value unit.Ratio
	}{
		{"target", c.Target},
		{"min_gain", c.MinGain},
		{"node_busy", c.NodeBusy},
		{"imbalance_threshold", c.ImbalanceThreshold},
		{"saturated_share", c.SaturatedShare},
		{"room_busy", c.RoomBusy},
		{"free_reserve", c.FreeReserve},
		{"reclaimable_share", c.ReclaimableShare},
	} {
		if !s.value.Valid() {
			errs = append(errs, fmt.Errorf("mao: %s is %v: it must be between 0 and 1", s.name, float64(s.value)))
		}
	}
	return errors.Join(errs...)
}

func (c Config) counts() error {
	var errs []error
	for _, n := range []struct {
		name       string
		value, min int
	}{
		{"bind_after", c.BindAfter, 1},
		{"estimate_after", c.EstimateAfter, 0},
		{"estimate_bind_after", c.EstimateBindAfter, 1},
		{"max_binds_per_window", c.MaxBindsPerWindow, 1},
		{"settle_windows", c.SettleWindows, 1},
		{"history_windows", c.HistoryWindows, 1},
		{"min_history", c.MinHistory, 1},
		{"forget_after", c.ForgetAfter, 0},
		{"max_nodes", c.MaxNodes, 0},
		{"widen_windows", c.WidenWindows, 1},
		{"uniform_windows", c.UniformWindows, 1},
	} {
		if n.value < n.min {
			errs = append(errs, fmt.Errorf("mao: %s is %d: it must be at least %d", n.name, n.value, n.min))
		}
	}
	if c.MinHistory > c.HistoryWindows {
		errs = append(errs, fmt.Errorf("mao: min_history is %d: it must not exceed history_windows, %d", c.MinHistory, c.HistoryWindows))
	}
	if c.BackoffWindows < 1 || c.BackoffCap < c.BackoffWindows {
		errs = append(errs, fmt.Errorf("mao: backoff_windows is %d and backoff_cap %d: they must be at least 1 and ascend", c.BackoffWindows, c.BackoffCap))
	}
	return errors.Join(errs...)
}

func (c Config) factors() error {
	var errs []error
	const many = 1e6 // a larger weight makes no sense; this also refuses NaN and ∞
	for _, f := range []struct {
		name     string
		value    float64
		min, max float64
	}{
		{"min_cpu", c.MinCPU, 0, many},
		{"estimate_margin", c.EstimateMargin, 0, many},
		{"quota_tolerance", c.QuotaTolerance, 1, 10},
		{"smoothing", c.Smoothing, 0.001, 1},
		{"room_idle", c.RoomIdle, 0, many},
		{"headroom_factor", c.HeadroomFactor, 0.1, 10},
		{"unbound_weight", c.UnboundWeight, 0, 1},
		{"unbound_cost", c.UnboundCost, 0, 1},
		{"move_weight", c.MoveWeight, 0, many},
		{"bandwidth_weight", c.BandwidthWeight, 0, many},
		{"cpu_weight", c.CPUWeight, 0, many},
		{"company_weight", c.CompanyWeight, 0, many},
		{"device_weight", c.DeviceWeight, 0, many},
	} {
		if !(f.value >= f.min && f.value <= f.max) {
			errs = append(errs, fmt.Errorf("mao: %s is %v: it must be between %v and %v", f.name, f.value, f.min, f.max))
		}
	}
	return errors.Join(errs...)
}

// WithProfile fills in the bandwidth of nodes that the configuration does not give, from
// the machine's measured profile: what all CPUs together read from a node, else what its
// own CPUs read. With nil nothing changes.
func (c Config) WithProfile(p *profile.Profile) Config {
	if p == nil || p.BandwidthDoubt() != "" {
		return c
	}
	limits := map[int]unit.Bytes{}
	for _, f := range p.Bandwidth {
		if f.From == f.To {
			limits[f.From] = unit.Bytes(f.Median.Or(0))
		}
	}
	for _, f := range p.Peak {
		limits[f.Node] = max(limits[f.Node], unit.Bytes(f.Median.Or(0)))
	}
	maps.Copy(limits, c.NodeBandwidth)
	maps.DeleteFunc(limits, func(_ int, limit unit.Bytes) bool { return limit <= 0 })
	if c.NodeBandwidth = limits; len(limits) == 0 {
		c.NodeBandwidth = nil
	}
	return c
}
