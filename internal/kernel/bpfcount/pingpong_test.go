// SPDX-License-Identifier: Apache-2.0

package bpfcount

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	sys "golang.org/x/sys/unix"
)

// Two processes pass a byte back and forth over pipes, each working a little in between:
// the worst case for counting at context switches. System calls are made without telling
// Go's scheduler, so that it adds no switches of its own.
//
//	parent ──"N W\n"──▶ ping ◀──byte──▶ pong        ping ──"done\n"──▶ parent

// Descriptors that both children get.
const (
	fromOther = 3
	toOther   = 4
)

func rawByte(call uintptr, fd int) bool {
	var b [1]byte
	for {
		n, _, errno := sys.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 1)
		if errno != sys.EINTR {
			return errno == 0 && n == 1
		}
	}
}

var buffer [64 << 10]byte

// work goes over a buffer as large as a core's L1 and some of its L2.
func work(steps int) (sum int) {
	for i := range steps {
		sum += int(buffer[(i*64)%len(buffer)])*3 + i
	}
	return sum
}

func ready() {
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	cpu, _ := strconv.Atoi(os.Getenv("HOMENODE_CPU"))
	var set sys.CPUSet
	set.Set(cpu)
	if err := sys.SchedSetaffinity(0, &set); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Println(sys.Gettid())
}

// pong works before it answers, as long as ping does: its environment has the number of
// steps.
func pong() {
	ready()
	steps, _ := strconv.Atoi(os.Getenv("HOMENODE_STEPS"))
	for rawByte(sys.SYS_READ, fromOther) {
		work(steps)
		rawByte(sys.SYS_WRITE, toOther)
	}
}

func ping() {
	ready()
	steps, _ := strconv.Atoi(os.Getenv("HOMENODE_STEPS"))
	for {
		var n int
		if _, err := fmt.Fscanln(os.Stdin, &n); err != nil {
			return
		}
		for range n {
			rawByte(sys.SYS_WRITE, toOther)
			work(steps)
			rawByte(sys.SYS_READ, fromOther)
		}
		fmt.Println("done")
	}
}

// pair is a running ping and pong.
type pair struct {
	t      *testing.T
	in     io.Writer
	out    io.Reader
	places [2]string // /proc/PID/task/TID/schedstat
}

// newPair starts both, each in a cgroup, on these CPUs.
func newPair(t *testing.T, dirs [2]string, cpus [2]int, steps int) *pair {
	t.Helper()
	p := &pair{t: t}
	r1, w1, err1 := os.Pipe()
	r2, w2, err2 := os.Pipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for i, files := range [2][]*os.File{{r2, w1}, {r1, w2}} {
		fd, err := sys.Open(dirs[i], sys.O_RDONLY|sys.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.ExtraFiles, cmd.Stderr = files, os.Stderr
		cmd.Env = append(os.Environ(), "HOMENODE_CHILD="+[]string{"ping", "pong"}[i], "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1",
			"HOMENODE_STEPS="+strconv.Itoa(steps), "HOMENODE_CPU="+strconv.Itoa(cpus[i]))
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		sys.Close(fd)
		var tid int
		if _, err := fmt.Fscanln(out, &tid); err != nil {
			t.Fatal(err)
		}
		p.places[i] = fmt.Sprintf("/proc/%d/task/%d/schedstat", cmd.Process.Pid, tid)
		if i == 0 {
			p.in, p.out = in, out
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	for _, f := range []*os.File{r1, w1, r2, w2} {
		f.Close()
	}
	return p
}

// used is the CPU time of both. The cost of a switch is charged to the task that comes.
func (p *pair) used() (d time.Duration) {
	for _, place := range p.places {
		data, err := os.ReadFile(place)
		if err != nil {
			p.t.Fatal(err)
		}
		ns, err := strconv.ParseInt(strings.Fields(string(data))[0], 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		d += time.Duration(ns)
	}
	return d
}

// run makes n round trips and returns the CPU time of one switch with the work between.
func (p *pair) run(n int) float64 {
	p.t.Helper()
	before := p.used()
	fmt.Fprintln(p.in, n)
	var done string
	if _, err := fmt.Fscanln(p.out, &done); err != nil || done != "done" {
		p.t.Fatal(err, done)
	}
	return float64(p.used()-before) / float64(2*n)
}
