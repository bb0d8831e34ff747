// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"fmt"

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
	NoProgressWindows int        `yaml:"no_progress_windows" json:"no_progress_windows"` // patience, also with pages that grow again
	RetryLimit        int        `yaml:"retry_limit" json:"retry_limit"`                 // failures of a step before giving up
	ForgetAfter       int        `yaml:"forget_after" json:"forget_after"`               // windows an unseen workload is remembered
}

// DefaultConfig returns the defaults; decode a file over it.
func DefaultConfig() Config {
	return Config{
		Rate: 256 * unit.MiB, ResidualShare: 0.002, ResidualBytes: unit.MiB, ResidualBound: 0.1,
		NoProgressWindows: 3, RetryLimit: 3, ForgetAfter: 3,
	}
}

// Validate says which setting cannot be, and what it must be, in one sentence.
func (c Config) Validate() error {
	if c.Rate < 0 || c.ResidualBytes < 0 {
		return fmt.Errorf("actuate: rate is %d and residual_bytes %d: they must not be negative", int64(c.Rate), int64(c.ResidualBytes))
	}
	if !c.ResidualShare.Valid() || !c.ResidualBound.Valid() || c.ResidualBound < c.ResidualShare {
		return fmt.Errorf("actuate: residual_share is %v and residual_bound %v: they must be between 0 and 1 and ascend", float64(c.ResidualShare), float64(c.ResidualBound))
	}
	if c.NoProgressWindows < 1 || c.RetryLimit < 0 || c.ForgetAfter < 0 {
		return fmt.Errorf("actuate: no_progress_windows is %d, retry_limit %d, forget_after %d: they must be at least 1, 0 and 0", c.NoProgressWindows, c.RetryLimit, c.ForgetAfter)
	}
	return nil
}
