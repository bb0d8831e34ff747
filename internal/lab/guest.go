// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"homenode/internal/lab/model"
	"homenode/internal/machine"
)

// Options are the options of a boot.
type Options struct {
	Shape   machine.Shape
	Assets  Assets
	Bin     string        // folder of homenode and homenode-lab for the guest, statically linked; "" = this program's
	Guest   string        // Busybox (default) or Debian
	Cgroup  string        // "v1" or "v2" (default); Debian has v2 only
	Dir     string        // folder of the run's files; "" = a temporary one, removed by Close
	Timeout time.Duration // limit of the boot, by the guest's own clock; 0 = 2 minutes, 10 with Debian
	// IdleRate is how fast the guest's clock runs relative to the host's while all CPUs
	// are idle; 0 = 1. A higher value is for guests that wait only for their own
	// timers. To a guest that waits for the host, the host is slower by that factor.
	IdleRate uint64
	// Flat hides the nodes from the guest's kernel (numa=off): the kernel sees one
	// node, while the model still has the shape's. Such a guest cannot be calibrated.
	Flat bool
	// Network gives the Debian guest a network card, eth0 10.0.2.15, which the guest sets up
	// itself. The host's loopback is 10.0.2.2 there.
	Network bool
	// HMAT makes the firmware report the shape's latencies and bandwidths.
	HMAT bool
	// Counters is how many general-purpose counters a CPU's PMU has. Hardware has 4
	// or 8; more events are multiplexed. 0: the PMU module's default.
	Counters int
	// Personality is the CPU that the guest's PMUs and /proc/cpuinfo look like, one of
	// Personalities; "" = the lab's own.
	Personality string

	modelConf string // for tests: the plugin's configuration instead of the shape's
}

// Guest is a running lab.
type Guest struct {
	Shape machine.Shape
	Dir   string
	Note  string // message of its server at its start; "" = nothing

	cmd     *exec.Cmd
	port    net.Conn
	w       *wireWriter
	tempDir bool
	exited  chan struct{} // closed when QEMU has ended

	mu      sync.Mutex
	lastID  uint64
	waiting map[uint64]*call
	broken  error
	fetchMu sync.Mutex
}

type call struct {
	line func(string)
	done chan frame
}

// Boot starts a guest and waits until its server answers. The model is off.
func Boot(ctx context.Context, o Options) (*Guest, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	g := &Guest{Shape: o.Shape, Dir: o.Dir, waiting: map[uint64]*call{}, exited: make(chan struct{})}
	if err := g.prepare(o); err != nil {
		g.removeDir()
		return nil, err
	}
	if err := errors.Join(g.setIdleRate(o.IdleRate), g.start(o.plan(g.Dir))); err != nil {
		g.removeDir()
		return nil, err
	}
	ctx, cancel := g.Within(ctx, o.Timeout)
	defer cancel()
	if err := g.connect(ctx); err != nil {
		// QEMU first: its output and the guest's are complete once it has ended.
		g.end()
		err = fmt.Errorf("boot lab %s: %w; console ends with %q, %s with %q", o.Shape.Name, err, g.endOf(consoleName), logName, g.endOf(logName))
		g.removeDir()
		return nil, err
	}
	return g, nil
}

func (o Options) plan(dir string) bootPlan {
	return bootPlan{assets: o.Assets, shape: o.Shape, dir: dir, guest: o.Guest, cgroup: o.Cgroup, flat: o.Flat, net: o.Network, hmat: o.HMAT, counters: o.Counters, personality: o.Personality}
}

// endOf is the end of a file of the run; "" = the file is empty, or missing.
func (g *Guest) endOf(name string) []byte {
	b, _ := os.ReadFile(filepath.Join(g.Dir, name))
	return tail(b, 600)
}

func tail(b []byte, n int) []byte {
	b = bytes.TrimSpace(b)
	return b[max(0, len(b)-n):]
}

// prepare writes the files of the run.
func (g *Guest) prepare(o Options) error {
	if g.Dir == "" {
		dir, err := os.MkdirTemp("", "homenode-lab-")
		if err != nil {
			return fmt.Errorf("make run directory: %w", err)
		}
		g.Dir, g.tempDir = dir, true
	}
	if err := os.MkdirAll(g.Dir, 0o755); err != nil {
		return fmt.Errorf("make run directory: %w", err)
	}
	files, err := programs(o.Bin)
	if err != nil {
		return err
	}
	conf := o.modelConf
	if conf == "" {
		conf = o.Shape.ModelConf()
	}
	return writeRunFiles(g.Dir, o.Assets, conf, files)
}

func writeRunFiles(dir string, a Assets, conf string, files []guestFile) error {
	initrd, err := os.ReadFile(a.Initramfs)
	if err != nil {
		return fmt.Errorf("read lab file: %w", err)
	}
	archive := bytes.NewBuffer(initrd)
	if err := writeCPIO(archive, files); err != nil {
		return fmt.Errorf("pack guest files: %w", err)
	}
	for name, data := range map[string][]byte{
		"initrd.cpio": archive.Bytes(),
		confName:      []byte(conf),
		sharedName:    make([]byte, model.Bytes),
		diskName:      nil,
		scratchName:   nil,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("write run file: %w", err)
		}
	}
	return errors.Join(os.Truncate(filepath.Join(dir, diskName), resultDiskBytes),
		os.Truncate(filepath.Join(dir, scratchName), scratchDiskBytes))
}

func (g *Guest) start(p bootPlan) error {
	log, err := os.Create(filepath.Join(g.Dir, logName))
	if err != nil {
		return fmt.Errorf("create QEMU's log: %w", err)
	}
	defer log.Close()
	g.cmd = exec.Command(p.assets.QEMU, qemuArgs(p)...)
	g.cmd.Stdout, g.cmd.Stderr = log, log
	dieWithParent(g.cmd)
	if err := g.cmd.Start(); err != nil {
		return fmt.Errorf("start QEMU: %w", err)
	}
	go func() {
		_ = g.cmd.Wait()
		close(g.exited)
	}()
	return nil
}

// connect waits for QEMU's socket and the guest's hello.
func (g *Guest) connect(ctx context.Context) error {
	hello := make(chan frame, 1)
	for g.port == nil {
		port, err := net.Dial("unix", filepath.Join(g.Dir, socketName))
		if err == nil {
			g.port = port
			break
		}
		select {
		case <-g.exited:
			return errors.New("QEMU ended at once")
		case <-ctx.Done():
			return fmt.Errorf("QEMU opened no port: %w", context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
	g.w = &wireWriter{w: g.port}
	go g.receive(hello)
	select {
	case f := <-hello:
		if f.Err != "" {
			return errors.New(f.Err)
		}
		g.Note = f.Line
		return nil
	case <-g.exited:
		return errors.New("the guest ended while booting")
	case <-ctx.Done():
		return fmt.Errorf("no answer: %w", context.Cause(ctx))
	}
}

func (g *Guest) receive(hello chan<- frame) {
	err := readFrames(g.port, func(f frame) bool {
		if f.Op == "hello" {
			select {
			case hello <- f:
			default: // a second hello: no caller waits for it
			}
			return true
		}
		g.mu.Lock()
		c := g.waiting[f.ID]
		if f.Done {
			delete(g.waiting, f.ID)
		}
		g.mu.Unlock()
		if c == nil {
			return true
		}
		if f.Done {
			c.done <- f
		} else if c.line != nil {
			c.line(f.Line)
		}
		return true
	})
	if err == nil {
		err = io.EOF
	}
	g.fail(fmt.Errorf("talk to the lab's guest: %w", err))
}

// fail ends every call that still waits.
func (g *Guest) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = err
	for id, c := range g.waiting {
		delete(g.waiting, id)
		c.done <- frame{Err: err.Error(), Exit: -1}
	}
}

func (g *Guest) ask(ctx context.Context, f frame, line func(string)) (frame, error) {
	c := &call{line: line, done: make(chan frame, 1)}
	g.mu.Lock()
	if g.broken != nil {
		g.mu.Unlock()
		return frame{}, g.broken
	}
	g.lastID++
	f.ID = g.lastID
	g.waiting[f.ID] = c
	g.mu.Unlock()
	if err := g.w.send(f); err != nil {
		return frame{}, err
	}
	select {
	case reply := <-c.done:
		return reply, nil
	case <-ctx.Done():
		return frame{ID: f.ID}, context.Cause(ctx)
	}
}

// Result of a program run in the guest.
type Result struct {
	Exit   int
	Stdout string
	Stderr string
}

// Run runs a program in the guest and waits for it. A non-zero exit code is a
// result, not an error.
func (g *Guest) Run(ctx context.Context, argv ...string) (Result, error) {
	return g.RunLines(ctx, nil, argv...)
}

// RunLines is Run, but passes on each line of stderr as it comes. When ctx ends, the
// program is interrupted, and the result has its output until then.
func (g *Guest) RunLines(ctx context.Context, line func(string), argv ...string) (Result, error) {
	var r Result
	var mu sync.Mutex // lines may come after this has returned
	var stderr strings.Builder
	reply, err := g.ask(ctx, frame{Op: "run", Argv: argv}, func(l string) {
		mu.Lock()
		defer mu.Unlock()
		stderr.WriteString(l + "\n")
		if line != nil {
			line(l)
		}
	})
	if err != nil && ctx.Err() != nil {
		r.Stdout = g.interrupt(ctx, reply.ID)
	}
	mu.Lock()
	r.Stderr = stderr.String()
	mu.Unlock()
	if err == nil && reply.Err != "" {
		err = errors.New(reply.Err)
	}
	if err != nil {
		return r, fmt.Errorf("run %v in the lab: %w", argv, err)
	}
	r.Exit, r.Stdout = reply.Exit, reply.Out
	return r, nil
}

// interrupt ends a program and returns its output so far. It does not wait for a guest
// that hangs.
func (g *Guest) interrupt(ctx context.Context, run uint64) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*endPatience)
	defer cancel()
	reply, err := g.ask(ctx, frame{Op: "end", Of: run}, nil)
	if err != nil {
		return ""
	}
	return reply.Out
}

// Put writes a file of at most 1 MiB in the guest.
func (g *Guest) Put(ctx context.Context, path string, mode os.FileMode, data []byte) error {
	if len(data) > maxPut {
		return fmt.Errorf("put %s into the lab: %d bytes are more than %d", path, len(data), maxPut)
	}
	reply, err := g.ask(ctx, frame{Op: "put", Path: path, Mode: uint32(mode), Data: data}, nil)
	if err == nil && reply.Err != "" {
		err = errors.New(reply.Err)
	}
	if err != nil {
		return fmt.Errorf("put %s into the lab: %w", path, err)
	}
	return nil
}

// Fetch brings a file out of the guest, through the result disk, and checks its
// sum.
func (g *Guest) Fetch(ctx context.Context, path string) ([]byte, error) {
	g.fetchMu.Lock()
	defer g.fetchMu.Unlock()
	reply, err := g.ask(ctx, frame{Op: "fetch", Path: path}, nil)
	if err == nil && reply.Err != "" {
		err = errors.New(reply.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch %s from the lab: %w", path, err)
	}
	disk, err := os.Open(filepath.Join(g.Dir, diskName))
	if err != nil {
		return nil, fmt.Errorf("open result disk: %w", err)
	}
	defer disk.Close()
	data := make([]byte, reply.Size)
	if _, err := disk.ReadAt(data, reply.Offset); err != nil {
		return nil, fmt.Errorf("read result disk: %w", err)
	}
	if sum := crc32.ChecksumIEEE(data); sum != reply.CRC {
		return nil, fmt.Errorf("fetch %s from the lab: sum is %08x, the guest wrote %08x", path, sum, reply.CRC)
	}
	return data, nil
}

// Clock reads the model's clock.
func (g *Guest) Clock() (model.Clock, error) {
	return model.ReadClock(filepath.Join(g.Dir, sharedName))
}

// Close ends the guest and removes a temporary run directory.
func (g *Guest) Close() {
	g.end()
	g.removeDir()
}

// end gives the guest three seconds if the port still works.
func (g *Guest) end() {
	grace := time.Duration(0)
	if g.w != nil && g.w.send(frame{Op: "stop"}) == nil {
		grace = 3 * time.Second
	}
	select {
	case <-g.exited:
	case <-time.After(grace):
		_ = g.cmd.Process.Kill()
		<-g.exited
	}
	if g.port != nil {
		g.port.Close()
	}
}

func (g *Guest) removeDir() {
	if g.tempDir {
		_ = os.RemoveAll(g.Dir)
	}
}
