// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"errors"
	"fmt"
	"math"
	"time"

	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Config bounds what binding may cost. All figures are our choice.
type Config struct {
	Rate              unit.Bytes `yaml:"rate" json:"rate"`                               // bytes/s of page moves, all workloads together; 0: unlimited
	ReservedCPUs      set.CPUSet `yaml:"reserved_cpus" json:"reserved_cpus"`             // never set
	ResidualShare     unit.Ratio `yaml:"residual_share" json:"residual_share"`           // remote share at which mems are set; more: a longer stall
	ResidualBytes     unit.Bytes `yaml:"residual_bytes" json:"residual_bytes"`           // or this much, about 1 ms per 1.5 MiB (MAO's 0.65 s/GB)
	ResidualBound     unit.Ratio `yaml:"residual_bound" json:"residual_bound"`           // the largest remote share that set-mems may be left with
	NoProgressWindows int        `yaml:"no_progress_windows" json:"no_progress_windows"` // also with pages that grow again
	RetryLimit        int        `yaml:"retry_limit" json:"retry_limit"`                 // failures of a step before giving up
	ForgetAfter       int        `yaml:"forget_after" json:"forget_after"`               // windows an unseen workload is remembered

	Horizon     time.Duration `yaml:"horizon" json:"horizon"`           // for how long memory is expected to be read as now; longer: more is moved
	PayRatio    float64       `yaml:"pay_ratio" json:"pay_ratio"`       // the saving over the horizon must exceed the cost of moving by this factor
	WhenUnknown WhenUnknown   `yaml:"when_unknown" json:"when_unknown"` // when it is unknown whether moving pays
	// PingPongDoublings bounds how often the patience doubles for pages that are moved
	// again and again within the horizon. 0: never.
	PingPongDoublings int           `yaml:"ping_pong_doublings" json:"ping_pong_doublings"`
	Way               Choice        `yaml:"way" json:"way"`               // whether a bind sets CPUs or moves memory first; see Way
	PageCache         bool          `yaml:"page_cache" json:"page_cache"` // also move pages of its files that no process maps
	HotFirst          bool          `yaml:"hot_first" json:"hot_first"`   // find the accessed pages, and move those before the others
	MaxStall          time.Duration `yaml:"max_stall" json:"max_stall"`   // one call of the mover should take no longer; 0: unlimited

	// Turn is how long all moves of a window together may take at Rate: the budget is
	// no more than that, however long the window was. The loop sets it from its period:
	// moving makes windows longer, and longer windows must not mean longer moves. 0: as
	// long as the window.
	Turn time.Duration `yaml:"-" json:"turn"`

	// Profile is what was measured on this machine; nil: costs are estimates.
	Profile *profile.Profile `yaml:"-" json:"-"`
}

// WhenUnknown is the choice when it is unknown whether moving pays.
type WhenUnknown string

// The choices.
const (
	MoveAnyway WhenUnknown = "move"
	WaitToKnow WhenUnknown = "wait"
)

// DefaultConfig returns the defaults; decode a file over it.
func DefaultConfig() Config {
	return Config{
		Rate: 256 * unit.MiB, ResidualShare: 0.002, ResidualBytes: unit.MiB, ResidualBound: 0.1,
		NoProgressWindows: 3, RetryLimit: 3, ForgetAfter: 3,
		Horizon: 10 * time.Minute, PayRatio: 1, WhenUnknown: MoveAnyway, PingPongDoublings: 6, Way: ByEstimate, PageCache: true, HotFirst: true, MaxStall: 20 * time.Millisecond,
	}
}

// Validate names each invalid setting, and its valid values, in one sentence:
// "actuate: SETTING is VALUE: …".
func (c Config) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("actuate: "+format, args...)) }
	if c.Rate < 0 || c.ResidualBytes < 0 {
		wrong("rate is %d and residual_bytes %d: they must not be negative", int64(c.Rate), int64(c.ResidualBytes))
	}
	if !c.ResidualShare.Valid() || !c.ResidualBound.Valid() || c.ResidualBound < c.ResidualShare {
		wrong("residual_share is %v and residual_bound %v: they must be between 0 and 1 and ascend", float64(c.ResidualShare), float64(c.ResidualBound))
	}
	if c.NoProgressWindows < 1 || c.RetryLimit < 0 || c.ForgetAfter < 0 {
		wrong("no_progress_windows is %d, retry_limit %d, forget_after %d: they must be at least 1, 0 and 0", c.NoProgressWindows, c.RetryLimit, c.ForgetAfter)
	}
	if c.Turn < 0 {
		wrong("turn is %v: it must not be negative (0: as long as the window)", c.Turn)
	}
	c.validatePays(wrong)
	return errors.Join(errs...)
}

// mostDoublings keeps the patience within an int, with any no_progress_windows.
const mostDoublings = 16

func (c Config) validatePays(wrong func(string, ...any)) {
	if c.Horizon <= 0 {
		wrong("horizon is %v: it must be positive, e.g. 10m", c.Horizon)
	}
	if !(c.PayRatio > 0) || math.IsInf(c.PayRatio, 0) {
		wrong("pay_ratio is %v: it must be a positive number", c.PayRatio)
	}
	if c.WhenUnknown != MoveAnyway && c.WhenUnknown != WaitToKnow {
		wrong("when_unknown is %q: want move or wait", c.WhenUnknown)
	}
	if c.PingPongDoublings < 0 || c.PingPongDoublings > mostDoublings {
		wrong("ping_pong_doublings is %d: want 0 to %d", c.PingPongDoublings, mostDoublings)
	}
	if c.Way != ByEstimate && c.Way != AlwaysCPUsFirst {
		wrong("way is %q: want %s or %s", c.Way, ByEstimate, AlwaysCPUsFirst)
	}
	if c.MaxStall < 0 {
		wrong("max_stall is %v: it must not be negative (0: unlimited)", c.MaxStall)
	}
}
