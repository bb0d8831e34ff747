// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// maxLatencyFile is what is read of a file that holds one number.
const maxLatencyFile = 64

// stalePeriods is how old, in periods, a service's word may be: one that writes once a
// period is late by one sometimes.
const stalePeriods = 3

// readLatency reads what a service says of its quality. Unknown with the reason where
// there is no such file, no number in it, or an old one: a service that hangs writes no
// more.
func readLatency(pattern, workload string, now time.Time, period time.Duration) unit.Value[float64] {
	file := strings.ReplaceAll(pattern, "{workload}", path.Base(workload))
	text, age, err := readSmall(file, now)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unit.UnknownValue[float64]("no " + file)
	case err != nil:
		return unit.UnknownValue[float64](err.Error())
	case age > stalePeriods*period:
		return unit.UnknownValue[float64](fmt.Sprintf("%s is %v old", file, age.Round(time.Second)))
	}
	seconds, err := parseLatency(text)
	if err != nil {
		return unit.UnknownValue[float64](fmt.Sprintf("parse %s: %v", file, err))
	}
	return unit.Measured(seconds, file)
}

// readSmall opens a regular file and nothing else: whoever may write that folder must not
// make the agent wait at a FIFO.
func readSmall(file string, now time.Time) (text string, age time.Duration, err error) {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return "", 0, err
	}
	f, _, err := unix.OpenInside("/", real)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxLatencyFile+1))
	return string(data), now.Sub(st.ModTime()), err
}

// parseLatency reads seconds, e.g. "0.0123\n".
func parseLatency(text string) (float64, error) {
	if len(text) > maxLatencyFile {
		return 0, fmt.Errorf("more than %d bytes: want one number of seconds", maxLatencyFile)
	}
	text = strings.TrimSpace(text)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, fmt.Errorf("%q is no number of seconds", text)
	}
	return v, nil
}
