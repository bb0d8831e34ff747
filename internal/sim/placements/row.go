// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"fmt"
	"io"
	"strconv"

	"homenode/internal/profiling"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/fleet"
	"homenode/internal/unit"
)

// Row is one workload in one placement. All of its speeds are known.
type Row = profiling.Row

// About is what a file says about how it was made.
type About struct {
	Commit  string // version of the program
	Command string // makes it again
}

// NewTable starts a data set. metadata is in this order: a file's bytes depend on it.
func NewTable(to io.Writer, c Config, about About) (*fleet.Table[Row], error) {
	noise, err := c.Noise.Measured()
	if err != nil {
		noise = "none: unmeasured"
	}
	metadata := []fleet.KeyValue{
		{Key: fleet.KeySchema, Value: strconv.Itoa(profiling.RowSchema)},
		{Key: profiling.KeySource, Value: profiling.Simulator},
		{Key: profiling.KeyCommit, Value: about.Commit},
		{Key: fleet.KeyCommand, Value: about.Command},
		{Key: fleet.KeyGenerator, Value: strconv.Itoa(catalog.SharersVersion)},
		{Key: fleet.KeySeed, Value: strconv.FormatUint(c.Seed, 10)},
		{Key: fleet.KeyMachine, Value: c.Name},
		{Key: profiling.KeyVCPUs, Value: strconv.Itoa(c.VCPUs)},
		{Key: profiling.KeyPlacements, Value: strconv.Itoa(len(c.list.Placements))},
		{Key: profiling.KeyLinks, Value: c.list.Links},
		{Key: fleet.KeyHow, Value: unit.HowModelled.String()},
		{Key: fleet.KeyNoise, Value: noise},
	}
	digest, err := fleet.Digest([]any{c.Machine, c.System})
	if err != nil {
		return nil, fmt.Errorf("write data set: %s: %w", fleet.KeyMachineDigest, err)
	}
	metadata = append(metadata, fleet.KeyValue{Key: fleet.KeyMachineDigest, Value: digest})
	return fleet.NewTable[Row](to, metadata), nil
}
