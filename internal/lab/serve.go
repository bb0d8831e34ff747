// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Serve is the guest's side: it carries out the host's requests until the port closes or
// the host sends stop. resultDisk is the raw disk for results. The hello of a guest
// reports if the guest is not fit for use, and its note.
func Serve(port io.ReadWriter, resultDisk, note string, unfit error) error {
	s := &server{w: &wireWriter{w: port}, disk: resultDisk, running: map[uint64]*program{}}
	hello := frame{Op: "hello", Line: note}
	if unfit != nil {
		hello.Err = unfit.Error()
	}
	if err := s.w.send(hello); err != nil {
		return err
	}
	return readFrames(port, func(f frame) bool {
		if f.Op == "stop" {
			return false
		}
		go s.handle(f)
		return true
	})
}

type server struct {
	w    *wireWriter
	disk string

	mu   sync.Mutex // guards the result disk
	next int64

	runs    sync.Mutex
	running map[uint64]*program
}

// program is a running program.
type program struct {
	cmd  *exec.Cmd
	out  output
	done chan struct{}
}

// output is a program's output so far.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// endPatience is how long an interrupted program may take to restore things.
const endPatience = 5 * time.Second

func (s *server) handle(f frame) {
	var reply frame
	switch f.Op {
	case "run":
		reply = s.run(f)
	case "end":
		reply = s.end(f)
	case "put":
		reply = put(f)
	case "fetch":
		reply = s.fetch(f)
	default:
		reply.Err = fmt.Sprintf("unknown operation %q", f.Op)
	}
	reply.ID, reply.Done = f.ID, true
	// No message can reach a host that is gone; the guest ends with it.
	_ = s.w.send(reply)
}

func (s *server) run(f frame) frame {
	if len(f.Argv) == 0 {
		return frame{Err: "run: no program given"}
	}
	cmd := exec.Command(f.Argv[0], f.Argv[1:]...)
	p := &program{cmd: cmd, done: make(chan struct{})}
	defer close(p.done)
	cmd.Stdout = &p.out
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return frame{Err: err.Error()}
	}
	if err := cmd.Start(); err != nil {
		return frame{Err: err.Error()}
	}
	s.keep(f.ID, p)
	defer s.keep(f.ID, nil)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		_ = s.w.send(frame{ID: f.ID, Line: lines.Text()})
	}
	err = cmd.Wait()
	reply := frame{Out: p.out.String(), Exit: cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		reply.Err = err.Error()
	}
	return reply
}

func (s *server) keep(id uint64, p *program) {
	s.runs.Lock()
	defer s.runs.Unlock()
	if s.running[id] = p; p == nil {
		delete(s.running, id)
	}
}

// end interrupts a program as a terminal does, and returns its output: all of it, or
// the output after endPatience.
func (s *server) end(f frame) frame {
	s.runs.Lock()
	p := s.running[f.Of]
	s.runs.Unlock()
	if p == nil {
		return frame{Err: "the program has ended"}
	}
	_ = p.cmd.Process.Signal(os.Interrupt)
	select {
	case <-p.done:
	case <-time.After(endPatience):
	}
	return frame{Out: p.out.String()}
}

func put(f frame) frame {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return frame{Err: err.Error()}
	}
	if err := os.WriteFile(f.Path, f.Data, os.FileMode(f.Mode)); err != nil {
		return frame{Err: err.Error()}
	}
	return frame{}
}

// fetch copies a file to the result disk and returns its place. The host reads it
// before it asks for another file, so that space can be used again.
func (s *server) fetch(f frame) frame {
	data, err := os.ReadFile(f.Path)
	if err != nil {
		return frame{Err: err.Error()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	padded := (int64(len(data)) + 4095) &^ 4095
	if padded > resultDiskBytes/2 {
		return frame{Err: fmt.Sprintf("fetch %s: %d bytes are more than the result disk takes (%d)", f.Path, len(data), resultDiskBytes/2)}
	}
	if s.next+padded > resultDiskBytes {
		s.next = 0
	}
	if err := writeSynced(s.disk, s.next, append(data, make([]byte, padded-int64(len(data)))...)); err != nil {
		return frame{Err: err.Error()}
	}
	reply := frame{Offset: s.next, Size: int64(len(data)), CRC: crc32.ChecksumIEEE(data)}
	s.next += padded
	return reply
}

func writeSynced(path string, offset int64, data []byte) error {
	disk, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer disk.Close()
	if _, err := disk.WriteAt(data, offset); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return disk.Sync()
}

// FindPort returns the guest's device of the lab's virtio-serial port.
func FindPort(root string) (string, error) {
	names, err := filepath.Glob(filepath.Join(root, "sys/class/virtio-ports/*/name"))
	if err != nil {
		return "", err
	}
	for _, n := range names {
		text, err := os.ReadFile(n)
		if err == nil && strings.TrimSpace(string(text)) == portName {
			return filepath.Join(root, "dev", filepath.Base(filepath.Dir(n))), nil
		}
	}
	return "", fmt.Errorf("find virtio-serial port %s: none under /sys/class/virtio-ports: this command runs only inside the lab's guest", portName)
}
