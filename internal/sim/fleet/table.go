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

// KeyValue is an entry of a file's metadata.
type KeyValue struct{ Key, Value string }

// metadata is in this order of keys: a file's bytes depend on it.
func (a TableAbout) metadata() ([]KeyValue, error) {
	c := a.Config
	all := []KeyValue{
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
			var err error
			if value, err = Digest(d.of); err != nil {
				return nil, fmt.Errorf("write data set: %s: %w", d.key, err)
			}
		}
		all = append(all, KeyValue{d.key, value})
	}
	return all, nil
}

// Digest is the SHA-256 of a value as JSON.
func Digest(of any) (string, error) {
	data, err := json.Marshal(of)
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}

// TableWriter writes a fleet's rows.
type TableWriter = Table[Row]

// NewTableWriter starts a file.
func NewTableWriter(to io.Writer, about TableAbout) (*TableWriter, error) {
	metadata, err := about.metadata()
	if err != nil {
		return nil, err
	}
	return NewTable[Row](to, metadata), nil
}

// Table writes rows of any kind.
type Table[T any] struct {
	w *parquet.GenericWriter[T]
}

// NewTable starts a file with this metadata.
func NewTable[T any](to io.Writer, metadata []KeyValue) *Table[T] {
	var options []parquet.WriterOption
	for _, kv := range metadata {
		options = append(options, parquet.KeyValueMetadata(kv.Key, kv.Value))
	}
	options = append(options, parquet.MaxRowsPerRowGroup(rowGroup), parquet.Compression(&parquet.Snappy), parquet.CreatedBy("homenode", "1", ""))
	return &Table[T]{parquet.NewGenericWriter[T](to, options...)}
}

// Write adds rows. It is a Sink.
func (w *Table[T]) Write(rows []T) error {
	if _, err := w.w.Write(rows); err != nil {
		return fmt.Errorf("write data set: %w", err)
	}
	return nil
}

// Close ends the file. Without it, the file is not valid.
func (w *Table[T]) Close() error {
	if err := w.w.Close(); err != nil {
		return fmt.Errorf("write data set: %w", err)
	}
	return nil
}
