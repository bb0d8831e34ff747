// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"homenode/internal/actuate"
	"homenode/internal/machine"
	"homenode/internal/policy/mao"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
)

// Config is a fleet to simulate.
type Config struct {
	Machine machine.Machine // of every server
	System  memsys.System
	Linux   linux.Settings
	Size    Size
	Seed    uint64
	// Share of the servers have MAO: the first ones by a hash of their number. 0: none, 1:
	// all.
	Share   float64
	Period  time.Duration // of a window
	Step    time.Duration // of the worlds; 0: the period
	Warmup  time.Duration // left out of every figure, rounded up to the end of a window
	MAO     mao.Config
	Actuate actuate.Config
	// DataSet runs every server that has MAO twice, with it and without, and makes rows.
	// Noise is applied to them.
	DataSet bool
	Noise   Noise
	// Lab is the shape whose trials are drawn (catalog.DrawTrials) in place of a fleet's servers, a
	// mix a server, with the seeds Seed, Seed + 1, …; nil: none. Only RunTrials knows it.
	Lab     *machine.Shape
	Workers int // servers at a time; below 1: one

	newWorld newWorld // nil: sim.NewWorld; tests have others
}

// DefaultConfig is a fleet without its machine. NUMA balancing is on, as in kernels by
// default: MAO's fleet had it, with 57.76 % of accesses local before binding.
func DefaultConfig() Config {
	l := linux.DefaultSettings()
	l.NUMABalancing = true
	return Config{
		Linux: l, Size: Size{Servers: 100, Minutes: 24 * 60, Workloads: 20}, Seed: 1, Share: 1,
		Period: time.Minute, Warmup: time.Hour, MAO: mao.DefaultConfig(), Actuate: actuate.DefaultConfig(), Noise: PackagedNoise(), Workers: 1,
	}
}

func (c Config) lasts() time.Duration { return time.Duration(c.Size.Minutes) * time.Minute }

// Validate names an invalid setting, and what it must be.
func (c Config) Validate() error {
	switch {
	case !(c.Share >= 0 && c.Share <= 1):
		return fmt.Errorf("a share of %v of the servers: want 0 to 1", c.Share)
	case c.Period < time.Second || c.Period > time.Hour:
		return fmt.Errorf("windows of %v: want 1s to 1h", c.Period)
	case c.Period > c.lasts():
		return fmt.Errorf("windows of %v in a run of %v: the run must hold one", c.Period, c.lasts())
	case c.Step < 0 || c.Step > c.Period:
		return fmt.Errorf("steps of %v in windows of %v: a window is some steps", c.Step, c.Period)
	case c.Warmup < 0 || c.Warmup >= c.lasts():
		return fmt.Errorf("a warm-up of %v in a run of %v: something must be left", c.Warmup, c.lasts())
	case c.windows() <= c.warmWindows():
		return fmt.Errorf("a run of %v, of which %v warm up, has no window of %v to measure: it must last %v", c.lasts(), c.Warmup, c.Period, time.Duration(c.warmWindows()+1)*c.Period)
	case len(c.Machine.Nodes) == 0:
		return errors.New("a fleet's machine has no nodes")
	}
	for _, err := range []error{c.Size.Validate(), c.validateShare(), c.validateDataSet(), HostOf(c.Machine, c.System).Validate(), c.MAO.Validate(), c.Actuate.Validate(), c.Noise.Validate()} {
		if err != nil {
			return err
		}
	}
	return nil
}

// validateShare requires both sides where both are requested.
func (c Config) validateShare() error {
	switch n := c.sharers(); {
	case c.Share > 0 && n == 0:
		return fmt.Errorf("a share of %v of %d servers is none of them: more servers, or a larger share", c.Share, c.Size.Servers)
	case c.Share < 1 && n == c.Size.Servers && n > 0:
		return fmt.Errorf("a share of %v of %d servers is all of them: more servers, or a smaller share", c.Share, c.Size.Servers)
	}
	return nil
}

func (c Config) validateDataSet() error {
	least := time.Duration(c.inWindows(lookFor)+c.inWindows(settleFor)+c.inWindows(compareFor)) * c.Period
	switch {
	case !c.DataSet:
		return nil
	case c.Share == 0:
		return errors.New("a data set of a fleet without MAO: nothing is bound, so there is no gain to record")
	case c.windows() < c.inWindows(lookFor)+c.inWindows(settleFor)+c.inWindows(compareFor):
		return fmt.Errorf("a data set of a run of %v: want %v at least: a replica is looked at for %v, settles for %v, and is compared for %v, in windows of %v",
			c.lasts(), least, lookFor, settleFor, compareFor, c.Period)
	}
	return nil
}

// windows is the number of whole windows in a run.
func (c Config) windows() int { return int(c.lasts() / c.Period) }

// inWindows is the fewest windows that last this long.
func (c Config) inWindows(d time.Duration) int { return int((d + c.Period - 1) / c.Period) }

// warmWindows is the number of windows that are not measured.
func (c Config) warmWindows() int { return c.inWindows(c.Warmup) }

// measured is the time that a server's figures cover.
func (c Config) measured() time.Duration {
	return time.Duration(c.windows()-c.warmWindows()) * c.Period
}

// sharers is the number of servers with MAO.
func (c Config) sharers() int { return int(math.Round(c.Share * float64(c.Size.Servers))) }

func (c Config) step() time.Duration {
	if c.Step == 0 {
		return c.Period
	}
	return c.Step
}

// withMAO says which servers have MAO: the share of them, in the order of their hashes. So
// a larger share includes the servers of a smaller one.
func (c Config) withMAO() []bool {
	type hashed struct {
		server int
		hash   uint64
	}
	all := make([]hashed, c.Size.Servers)
	for i := range all {
		r := detmath.NewRandom(c.Seed, "fleet", "share", strconv.Itoa(i))
		all[i] = hashed{i, r.Uint64()}
	}
	slices.SortFunc(all, func(a, b hashed) int { return cmp.Or(cmp.Compare(a.hash, b.hash), a.server-b.server) })
	has := make([]bool, len(all))
	for _, h := range all[:c.sharers()] {
		has[h.server] = true
	}
	return has
}

// serverSeed is the seed of a server's world: the same with MAO and without.
func (c Config) serverSeed(server int) uint64 {
	r := detmath.NewRandom(c.Seed, "fleet", "server", strconv.Itoa(server))
	return r.Uint64()
}
