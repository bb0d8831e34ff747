// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// maxLatencyFile is how much is read of a file that holds one number, bytes.
const maxLatencyFile = 64

// stalePeriods is how old a service's report may be, in periods. A service that writes
// once a period is sometimes late by one.
const stalePeriods = 3

// latencyLimit is how long reading a file may take: a file system whose server is gone
// would block the round for ever. Up to latencyMost such reads stay pending in the
// background.
const latencyLimit, latencyMost = time.Second, 4

// small is the content of a small file.
type small struct {
	text string
	age  time.Duration
	err  error
}

// latencies reads the latencies that services report.
type latencies struct {
	read func(file latencyFile, now time.Time) small // nil: readSmall
	hang map[string]<-chan small                     // by file: reads that have not returned yet
}

// latencyFile is a file of one workload. The folder comes from the configuration, up to
// the place of the workload's name; below it other users write.
type latencyFile struct {
	workload, folder, path string
}

func (f latencyFile) String() string { return filepath.Join(f.folder, f.path) }

func latencyFileOf(pattern, workload string) latencyFile {
	before, _, _ := strings.Cut(pattern, "{workload}")
	folder := before[:strings.LastIndexByte(before, '/')+1]
	return latencyFile{workload, folder, strings.ReplaceAll(pattern[len(folder):], "{workload}", path.Base(workload))}
}

// of reads a service's latency. It is unknown, with the reason, if there is no such
// file, no number in it, or an old one: a service that hangs does not write.
func (l *latencies) of(pattern, workload string, now time.Time, period time.Duration) unit.Value[float64] {
	file := latencyFileOf(pattern, workload)
	got := l.inTime(file, now)
	switch {
	case errors.Is(got.err, fs.ErrNotExist):
		return unit.UnknownValue[float64]("no " + file.String())
	case got.err != nil:
		return unit.UnknownValue[float64](got.err.Error())
	case got.age > stalePeriods*period:
		return unit.UnknownValue[float64](fmt.Sprintf("%s is %s old", file, render.Span(got.age)))
	}
	seconds, err := parseLatency(got.text)
	if err != nil {
		return unit.UnknownValue[float64](fmt.Sprintf("parse %s: %v", file, err))
	}
	return unit.Measured(seconds, file.String())
}

// inTime reads a file, or gives up after latencyLimit. The read goes on in the
// background, and the file is not read again before it has ended.
func (l *latencies) inTime(file latencyFile, now time.Time) small {
	if l.hang == nil {
		l.hang = map[string]<-chan small{}
	}
	name := file.String()
	if l.settle(); l.hang[name] != nil || len(l.hang) >= latencyMost {
		return small{err: fmt.Errorf("read %s: no answer: %d files do not answer, this one or others", name, len(l.hang))}
	}
	read := l.read
	if read == nil {
		read = readSmall
	}
	answer := make(chan small, 1)
	go func() { answer <- read(file, now) }()
	limit := time.NewTimer(latencyLimit)
	defer limit.Stop()
	select {
	case got := <-answer:
		return got
	case <-limit.C:
		l.hang[name] = answer
		return small{err: fmt.Errorf("read %s: no answer in %v", name, latencyLimit)}
	}
}

// settle forgets the reads that have ended meanwhile.
func (l *latencies) settle() {
	for name, answer := range l.hang {
		select {
		case <-answer:
			delete(l.hang, name)
		default:
		}
	}
}

// readSmall opens only a regular file whose owner may report. A user who may write to that
// folder must not be able to make the agent wait, or report what only root may read.
func readSmall(file latencyFile, now time.Time) small {
	f, err := unix.OpenBeneath(file.folder, file.path, func(owner, folderOwner uint32) bool {
		return owner == 0 || int(owner) == os.Geteuid() || owner == folderOwner || kernel.RunsAs(kernel.Root{}, file.workload, owner)
	}, kernel.ServedByKernel)
	if err != nil {
		return small{err: err}
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return small{err: err}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxLatencyFile+1))
	return small{string(data), now.Sub(st.ModTime()), err}
}

// parseLatency reads seconds, e.g. "0.0123\n".
func parseLatency(text string) (float64, error) {
	if len(text) > maxLatencyFile {
		return 0, fmt.Errorf("more than %d bytes: want one number of seconds", maxLatencyFile)
	}
	text = strings.TrimSpace(text)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, errors.New("want one number of seconds") // the file's content must not be disclosed
	}
	return v, nil
}
