// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"homenode/internal/cli"
	"homenode/internal/sim/fleet"
)

// dataSet is a file of rows while it is written: it has a temporary name until
// it is complete. The zero dataSet means that there is none.
type dataSet[T any] struct {
	path string
	file *os.File
	rows *fleet.Table[T]
}

// openDataSet starts the file that a flag names.
func openDataSet[T any](flag, path string, start func(io.Writer) (*fleet.Table[T], error)) (dataSet[T], error) {
	if err := cli.CanReplace(flag, path); err != nil {
		return dataSet[T]{}, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".homenode-*")
	if err != nil {
		return dataSet[T]{}, fmt.Errorf("%s: write %s: %w", flag, path, err)
	}
	d := dataSet[T]{path: path, file: file}
	if d.rows, err = start(file); err != nil {
		d.drop()
		return dataSet[T]{}, err
	}
	return d, nil
}

func (f simFleetFlags) open(c fleet.Config) (dataSet[fleet.Row], error) {
	if f.dataset == "" {
		return dataSet[fleet.Row]{}, nil
	}
	return openDataSet("--dataset", f.dataset, func(w io.Writer) (*fleet.TableWriter, error) {
		return fleet.NewTableWriter(w, fleet.TableAbout{Command: f.command(c), Config: c})
	})
}

// command makes the same rows again in the same folder. It leaves out the name of
// the data set and the number of workers, because they change no byte.
func (f simFleetFlags) command(c fleet.Config) string {
	words := []string{
		"homenode-lab", "sim", "fleet", "--servers", strconv.Itoa(f.servers), "--days", strconv.FormatFloat(f.days, 'g', -1, 64),
		"--mao", strconv.FormatFloat(c.Share, 'g', -1, 64), "--seed", strconv.FormatUint(f.seed, 10), "--machine", f.machine,
		"--workloads", strconv.Itoa(f.workloads), "--period", f.period.String(), "--numa-balancing=" + strconv.FormatBool(f.numaBalancing),
	}
	if f.shapes != "" && strings.HasPrefix(c.Machine.Origin, "shape:") {
		words = append(words, "--shapes", f.shapes)
	}
	if f.profile != "" {
		words = append(words, "--profile", f.profile)
	}
	if f.noise != "" {
		words = append(words, "--noise", f.noise)
	}
	return shellLine(append(words, "--dataset", "rows.parquet"))
}

// shellLine is a command line that a shell reads back as these words.
func shellLine(words []string) string {
	line := make([]string, len(words))
	for i, w := range words {
		line[i] = quoted(w)
	}
	return strings.Join(line, " ")
}

// quoted is a word in the form that a shell reads back.
func quoted(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=+:,", r))
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// twoFiles refuses one file for both the result and the rows, under any names.
func (f simFleetFlags) twoFiles() error {
	if f.out == "" || f.dataset == "" {
		return nil
	}
	a, errA := resolved(f.out)
	b, errB := resolved(f.dataset)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if a != b && !sameFile(f.out, f.dataset) {
		return nil
	}
	return fmt.Errorf("--out %s and --dataset %s are the same file: name two", f.out, f.dataset)
}

// resolved is the one real name of a file, whether it exists or not.
func resolved(path string) (string, error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", fmt.Errorf("%s: find its folder: %w", path, err)
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// sameFile finds hard links to one existing file.
func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

func (d dataSet[T]) sink() func([]T) error {
	if d.rows == nil {
		return nil
	}
	return d.rows.Write
}

// keep moves the file to its final name.
func (d dataSet[T]) keep() error {
	if d.rows == nil {
		return nil
	}
	if err := errors.Join(d.rows.Close(), d.file.Chmod(0o644), d.file.Close()); err != nil {
		return err
	}
	return os.Rename(d.file.Name(), d.path)
}

// drop removes a file that was not kept.
func (d dataSet[T]) drop() {
	if d.file != nil {
		d.file.Close()
		os.Remove(d.file.Name())
	}
}
