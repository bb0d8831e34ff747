// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The arms, in the order of the table.
const (
	ArmLinux     = "linux"          // NUMA balancing off
	ArmBalancing = "numa-balancing" // on
	ArmNumad     = "numad"
	ArmHomenode  = "homenode"
	ArmByHand    = "by-hand" // the ceiling: placed before the start
)

// Arms lists all arms.
var Arms = []string{ArmLinux, ArmBalancing, ArmNumad, ArmHomenode, ArmByHand}

// Title describes an arm in words.
func Title(arm string) string {
	return map[string]string{
		ArmLinux: "Linux, NUMA balancing off", ArmBalancing: "Linux, NUMA balancing on", ArmNumad: "numad (Debian)",
		ArmHomenode: "homenode", ArmByHand: "by hand, before the start",
	}[arm]
}

var nan = math.NaN()

// mover is what moves memory and threads in an arm. CPU time is NaN if it is
// unknown.
type mover interface {
	cpuSeconds() float64
	acted() (bool, string)
	stop() error
}

func startMover(p Plan) (mover, error) {
	switch p.Arm {
	case ArmNumad:
		return startNumad()
	case ArmHomenode:
		return startAgent(p.Agent)
	case ArmBalancing:
		return &balancing{before: vmstat("numa_pages_migrated")}, nil
	default:
		return noMover{}, nil
	}
}

// noMover is the mover of arms in which no program moves anything.
type noMover struct{}

func (noMover) cpuSeconds() float64   { return 0 }
func (noMover) acted() (bool, string) { return true, "" }
func (noMover) stop() error           { return nil }

// balancing is the kernel's: it runs in the tasks' own time, which is not
// counted.
type balancing struct{ before float64 }

func (b *balancing) cpuSeconds() float64 { return nan }
func (b *balancing) acted() (bool, string) {
	moved := vmstat("numa_pages_migrated") - b.before
	return moved > 0, fmt.Sprintf("numa_pages_migrated %.0f", moved)
}
func (b *balancing) stop() error { return nil }

const numadLog = "/var/log/numad.log"

// numad runs as Debian ships it, with its shortest period (-i 1:5), because the
// warm-up is short. It becomes a daemon.
type numad struct{ pid int }

func startNumad() (mover, error) {
	for _, dir := range []string{"/var/log", "/var/run"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	_ = os.Remove(numadLog)
	if out, err := exec.Command("numad", "-i", "1:5").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("start numad: %w: %s", err, out)
	}
	for range 50 {
		if text, err := os.ReadFile("/var/run/numad.pid"); err == nil {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				return &numad{pid: pid}, nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil, fmt.Errorf("start numad: no /var/run/numad.pid after 5 s")
}

func (n *numad) cpuSeconds() float64 { return processCPU(n.pid) }

func (n *numad) acted() (bool, string) {
	text, err := os.ReadFile(numadLog)
	if err != nil {
		return false, "no " + numadLog
	}
	var advice []string
	for line := range strings.Lines(string(text)) {
		if i := strings.Index(line, "Advising pid"); i >= 0 {
			advice = append(advice, strings.TrimSpace(line[i:]))
		}
	}
	return len(advice) > 0, strings.Join(advice, "; ")
}

func (n *numad) stop() error {
	if n.pid == 0 {
		return nil
	}
	err := syscall.Kill(n.pid, syscall.SIGTERM)
	for range 100 {
		if syscall.Kill(n.pid, 0) != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	_ = syscall.Kill(n.pid, syscall.SIGKILL)
	_ = os.Remove("/var/run/numad.pid")
	n.pid = 0
	return err
}

// agent is homenode itself.
type agent struct {
	cmd  *exec.Cmd
	done chan error
}

const (
	agentLog   = "/tmp/agent.log"
	agentState = "/run/homenode"
)

func startAgent(config string) (mover, error) {
	_ = os.RemoveAll(agentState)
	log, err := os.Create(agentLog)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	a := &agent{cmd: exec.Command("homenode", "agent", "--config", config), done: make(chan error, 1)}
	a.cmd.Stdout, a.cmd.Stderr = log, log
	if err := a.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	go func() { a.done <- a.cmd.Wait() }()
	return a, nil
}

func (a *agent) cpuSeconds() float64 { return processCPU(a.cmd.Process.Pid) }

func (a *agent) acted() (bool, string) {
	out, err := exec.Command("homenode", "status", "-o", "text").CombinedOutput()
	if err != nil {
		text, _ := os.ReadFile(agentLog)
		return false, fmt.Sprintf("status: %v: %s; log: %s", err, out, text)
	}
	steps, err := os.ReadFile(agentLog)
	if err != nil {
		return false, err.Error()
	}
	acted := strings.Contains(string(steps), "msg=step")
	return acted, strings.TrimSpace(string(out)) + "\n" + stepLines(string(steps))
}

// stepLines are the lines of the agent's log that report steps.
func stepLines(log string) string {
	var steps []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, "msg=step") {
			steps = append(steps, strings.TrimSpace(line))
		}
	}
	return strings.Join(steps, "\n")
}

// stop makes the agent restore its settings.
func (a *agent) stop() error {
	if a.done == nil {
		return nil
	}
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	defer func() { a.done = nil }()
	select {
	case err := <-a.done:
		if err != nil {
			text, _ := os.ReadFile(agentLog)
			return fmt.Errorf("agent: %w: %s", err, text)
		}
		return nil
	case <-time.After(60 * time.Second):
		_ = a.cmd.Process.Kill()
		<-a.done
		return fmt.Errorf("agent did not end within 60 s of SIGTERM")
	}
}

// ticksPerSecond is USER_HZ, which is 100 on every architecture that Linux runs
// on today.
const ticksPerSecond = 100

// processCPU is user + system time of a process; NaN if the process is gone.
func processCPU(pid int) float64 {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nan
	}
	_, rest, ok := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return nan
	}
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	if err1 != nil || err2 != nil {
		return nan
	}
	return (user + system) / ticksPerSecond
}
