// SPDX-License-Identifier: Apache-2.0

package numad

import (
	"fmt"
	"time"

	"homenode/internal/unit"
)

// Config holds numad's options, named after them, and its constants.
type Config struct {
	MinMemory   unit.Bytes    // MEMORY_THRESHOLD: smaller workloads are left alone
	MinCPU      float64       // CPU_THRESHOLD
	Utilisation unit.Ratio    // -u: target utilisation of a node; less leaves more room
	Locality    unit.Ratio    // -m: share of a workload's memory on its nodes that is enough
	SMTShare    unit.Ratio    // -t: what each further CPU of a core adds to it
	MinInterval time.Duration // -i: until the next scan, after one that moved something
	MaxInterval time.Duration // -i: the same, after a scan that moved nothing
	Again       time.Duration // MIN_DELAY_FOR_REEVALUATION
	Inactive    unit.Ratio    // share of page cache that counts as free (-C 1); our choice, as windows do not have it
}

// DefaultConfig has numad's defaults.
func DefaultConfig() Config {
	return Config{
		MinMemory: 300 * unit.MiB, MinCPU: 0.5, Utilisation: 0.85, Locality: 0.90, SMTShare: 0.20,
		MinInterval: 5 * time.Second, MaxInterval: 15 * time.Second, Again: 5 * time.Minute, Inactive: 0.5,
	}
}

// Validate names the setting that is out of range, and its range, in one sentence.
func (c Config) Validate() error {
	switch {
	case c.MinMemory < 0 || !(c.MinCPU >= 0):
		return fmt.Errorf("numad: thresholds are %v and %g CPUs: they must not be negative", c.MinMemory, c.MinCPU)
	case !(c.Utilisation > 0 && c.Utilisation <= 1.3):
		return fmt.Errorf("numad: utilisation is %v: it must be above 0, and 1.3 at most", float64(c.Utilisation))
	case !c.Locality.Valid() || !c.SMTShare.Valid() || !c.Inactive.Valid():
		return fmt.Errorf("numad: locality is %v, SMT share %v, inactive %v: they must be between 0 and 1", float64(c.Locality), float64(c.SMTShare), float64(c.Inactive))
	case c.MinInterval <= 0 || c.MaxInterval < c.MinInterval || c.Again < 0:
		return fmt.Errorf("numad: intervals are %v and %v, %v: they must be positive and ascend", c.MinInterval, c.MaxInterval, c.Again)
	}
	return nil
}
