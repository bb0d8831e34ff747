// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// loadProcess is one running load program, in its workload's cgroup.
type loadProcess struct {
	workload   Workload
	cmd        *exec.Cmd
	stderr     bytes.Buffer
	ready, out string
	shared     string // a file it maps; "" = none
	done       chan error
	ended      bool
}

// loadArgs are a load's arguments in an arm.
func loadArgs(w Workload, arm string) []string {
	args := strings.Fields(w.Load)
	if arm == ArmByHand {
		args = append(args, strings.Fields(w.ByHand)...)
	}
	return args
}

// sharedFile is the file that a load maps (--file); "" = none.
func sharedFile(args []string) string {
	for i, a := range args {
		if value, ok := strings.CutPrefix(a, "--file="); ok {
			return value
		}
		if a == "--file" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

func startLoad(w Workload, args []string, seed uint64) (*loadProcess, error) {
	l := &loadProcess{
		workload: w, ready: "/tmp/" + w.Name + ".ready", out: "/tmp/" + w.Name + ".json", shared: sharedFile(args),
		done: make(chan error, 1),
	}
	for _, f := range []string{l.ready, l.out} {
		_ = os.Remove(f)
	}
	l.removeShared()
	args = append(args, "--name", w.Name, "--seed", strconv.FormatUint(seed, 10), "--ready", l.ready, "--out", l.out)
	l.cmd = exec.Command("homenode-load", args...)
	l.cmd.Stderr = &l.stderr
	dir, err := os.Open(groupOf(w.Name))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	l.cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := l.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start load %s: %w", w.Name, err)
	}
	go func() { l.done <- l.cmd.Wait() }()
	return l, nil
}

// removeShared removes the file that the load maps. Its pages would stay on
// their nodes, and the next run would begin with them.
func (l *loadProcess) removeShared() {
	if l.shared != "" {
		_ = os.Remove(l.shared)
	}
}

func (l *loadProcess) waitReady(ctx context.Context, limit time.Duration) error {
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if _, err := os.Stat(l.ready); err == nil {
			return nil
		}
		select {
		case err := <-l.done:
			l.ended = true
			return fmt.Errorf("load %s ended before it was ready: %v: %s", l.workload.Name, err, strings.TrimSpace(l.stderr.String()))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("load %s is not ready after %v", l.workload.Name, limit)
}

// finish ends the program and reads its report.
func (l *loadProcess) finish() (loadReport, error) {
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return loadReport{}, fmt.Errorf("end load %s: %w: %s", l.workload.Name, err, strings.TrimSpace(l.stderr.String()))
	}
	select {
	case err := <-l.done:
		l.ended = true
		if err != nil {
			return loadReport{}, fmt.Errorf("load %s: %w: %s", l.workload.Name, err, strings.TrimSpace(l.stderr.String()))
		}
	case <-time.After(60 * time.Second):
		return loadReport{}, fmt.Errorf("load %s did not end within 60 s", l.workload.Name)
	}
	data, err := os.ReadFile(l.out)
	if err != nil {
		return loadReport{}, fmt.Errorf("read report of load %s: %w", l.workload.Name, err)
	}
	var r loadReport
	if err := json.Unmarshal(data, &r); err != nil {
		return loadReport{}, fmt.Errorf("read report of load %s: %w", l.workload.Name, err)
	}
	return r, nil
}

// kill ends the program in any state, and removes its shared file.
func (l *loadProcess) kill() {
	defer l.removeShared()
	if l.ended {
		return
	}
	_ = l.cmd.Process.Kill()
	<-l.done
	l.ended = true
}

// loadReport is the part of a load program's report that is used here.
type loadReport struct {
	Phases []loadPhase `json:"phases"`
}

type loadPhase struct {
	Phase   int     `json:"phase"`
	Work    float64 `json:"work"`
	Latency *struct {
		P50 float64 `json:"p50"`
		P99 float64 `json:"p99"`
	} `json:"latency_us"`
}

// phase returns one phase; a phase without work has none.
func (r loadReport) phase(n int) loadPhase {
	for _, p := range r.Phases {
		if p.Phase == n {
			return p
		}
	}
	return loadPhase{Phase: n}
}
