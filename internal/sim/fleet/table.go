// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"homenode/internal/unit"
)

// rowGroup is the number of rows in a group: a reader can skip groups, and a writer holds
// one in memory. Some 2 MB.
const rowGroup = 10_000

// TableAbout is what a file says about how it was made.
type TableAbout struct {
	Command string // command that makes it again
	Config  Config
}

// The keys of the file's metadata. Digests are SHA-256 of what was read, as JSON: two files
// with the same command and the same digests have the same rows.
const (
	KeySchema    = "homenode.schema"
	KeyGenerator = "homenode.generator_version"
	KeySeed      = "homenode.seed"
	KeyCommand   = "homenode.command"
	KeyMachine   = "homenode.machine"
	KeyHow       = "homenode.how"
	KeyNoise     = "homenode.noise"
	KeyGain      = "homenode.gain" // what a gain means

	KeyMachineDigest  = "homenode.machine_sha256" // including its memory system
	KeyProfileDigest  = "homenode.profile_sha256" // "none": without one
	KeyNoiseDigest    = "homenode.noise_sha256"
	KeySettingsDigest = "homenode.settings_sha256" // of Linux, MAO and its moves, windows, warm-up
)

// noise says where the noise was measured; placeholders cannot say that.
func (a TableAbout) noise() string {
	source, err := a.Config.Noise.Measured()
	if err != nil {
		return "none: unmeasured"
	}
	return fmt.Sprintf("measured, %d repeats: %s", a.Config.Noise.Repeats, source)
}

// metadata is in this order of keys: a file's bytes depend on it.
func (a TableAbout) metadata() ([]parquet.WriterOption, error) {
	c := a.Config
	all := []struct{ key, value string }{
		{KeySchema, strconv.Itoa(RowSchema)},
		{KeyGenerator, strconv.Itoa(GeneratorVersion)},
		{KeySeed, strconv.FormatUint(c.Seed, 10)},
		{KeyCommand, a.Command},
		{KeyMachine, c.Machine.Origin},
		{KeyHow, unit.HowModelled.String()},
		{KeyNoise, a.noise()},
		{KeyGain, GainMeaning},
	}
	moves := c.Actuate
	moves.Profile = nil
	for _, d := range []struct {
		key  string
		of   any
		none bool
	}{
		{KeyMachineDigest, []any{c.Machine, c.System}, false},
		{KeyProfileDigest, c.Actuate.Profile, c.Actuate.Profile == nil},
		{KeyNoiseDigest, c.Noise, false},
		{KeySettingsDigest, []any{c.Linux, c.MAO, moves, c.Period, c.Step, c.Warmup}, false},
	} {
		value := "none"
		if !d.none {
			data, err := json.Marshal(d.of)
			if err != nil {
				return nil, fmt.Errorf("write data set: %s: %w", d.key, err)
			}
			value = fmt.Sprintf("%x", sha256.Sum256(data))
		}
		all = append(all, struct{ key, value string }{d.key, value})
	}
	options := make([]parquet.WriterOption, len(all))
	for i, kv := range all {
		options[i] = parquet.KeyValueMetadata(kv.key, kv.value)
	}
	return options, nil
}

// TableWriter writes rows.
type TableWriter struct {
	w *parquet.GenericWriter[Row]
}

// NewTableWriter starts a file.
func NewTableWriter(to io.Writer, about TableAbout) (*TableWriter, error) {
	options, err := about.metadata()
	if err != nil {
		return nil, err
	}
	options = append(options, parquet.MaxRowsPerRowGroup(rowGroup), parquet.Compression(&parquet.Snappy), parquet.CreatedBy("homenode", "1", ""))
	return &TableWriter{parquet.NewGenericWriter[Row](to, options...)}, nil
}

// Write adds rows. It is a Sink.
func (w *TableWriter) Write(rows []Row) error {
	if _, err := w.w.Write(rows); err != nil {
		return fmt.Errorf("write data set: %w", err)
	}
	return nil
}

// Close ends the file. Without it, the file is not valid.
func (w *TableWriter) Close() error {
	if err := w.w.Close(); err != nil {
		return fmt.Errorf("write data set: %w", err)
	}
	return nil
}
