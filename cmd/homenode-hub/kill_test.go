// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"homenode/internal/agent/outbox"
	"homenode/internal/cli/clitest"
	"homenode/internal/hub"
	"homenode/internal/hub/ca"
	"homenode/internal/store"
	"homenode/internal/store/sqlite"
	"homenode/internal/unit"
)

// part is the environment variable that makes this test binary a hub or an agent; its value
// is "hub FOLDER", or "agent FOLDER FIRST" for one that sends windows from a number on.
const part = "HOMENODE_HUB_PART"

func TestMain(m *testing.M) {
	words := strings.Fields(os.Getenv(part))
	if len(words) == 0 {
		os.Exit(m.Run())
	}
	var err error
	if words[0] == "hub" {
		err = beHub(words[1])
	} else {
		first, _ := strconv.Atoi(words[2])
		err = beAgent(words[1], first)
	}
	fmt.Fprintln(os.Stderr, words[0], err)
	os.Exit(1)
}

func beHub(dir string) error {
	c, err := hub.ReadConfig(filepath.Join(dir, "hub.yaml"))
	if err != nil {
		return err
	}
	return serve(context.Background(), c, io.Discard, nil)
}

// beAgent sends a window with a decision each few milliseconds, and prints which ones the
// spool has. With first 0 it only sends what an earlier one left, and ends.
func beAgent(dir string, first int) error {
	c := outbox.Config{Address: "https://" + address(dir), CA: filepath.Join(dir, "hub-ca.pem"), Certificate: filepath.Join(dir, "host.pem"), Spool: filepath.Join(dir, "spool"), Budget: 64 * unit.MiB}
	o, err := outbox.New(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if first == 0 {
		for o.Status().Waiting > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		s := o.Status()
		o.Close()
		fmt.Println("drained", len(s.Dropped), s.Dropped)
		return nil
	}
	for i := first; ; i++ {
		at := time.Now()
		name := fmt.Sprint("/w", i)
		o.Offer(store.Batch{
			Windows:   []store.Window{{At: at, Length: time.Second, Workload: name}},
			Decisions: []store.Decision{{At: at, Kind: "bind", Workload: name, Rule: "r", Sentence: "s"}},
		})
		for o.Saved() < uint64(i-first+1) {
			time.Sleep(time.Millisecond)
		}
		fmt.Println("saved", i)
	}
}

func address(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, "address"))
	return string(text)
}

// process is a part that runs.
type process struct {
	cmd   *exec.Cmd
	ended sync.WaitGroup
}

func start(t *testing.T, role string, line func(string)) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), part+"="+role)
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.ended.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			line(lines.Text())
		}
		_ = p.cmd.Wait()
	})
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	p.ended.Wait()
}

// Hub with its store, and agent, are killed at random moments. In the end everything that
// the spool had is in the store, once. test-full has 100 of these moments.
func TestKilledAnywhere(t *testing.T) {
	points := 6
	if n, err := strconv.Atoi(os.Getenv("HOMENODE_KILL_POINTS")); err == nil {
		points = n
	}
	dir := prepare(t)
	saved, last := map[string]bool{}, 0
	var mu sync.Mutex
	heard := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if n, ok := strings.CutPrefix(text, "saved "); ok {
			saved["/w"+n] = true
			i, _ := strconv.Atoi(n)
			last = max(last, i)
		}
	}
	next := func() int { // a window that was not heard of may be there, too: its number is not used again
		mu.Lock()
		defer mu.Unlock()
		last += 1000
		return last
	}
	h, a := start(t, "hub "+dir, heard), start(t, fmt.Sprint("agent ", dir, " ", 1), heard)
	killed := map[string]int{}
	for range points {
		time.Sleep(time.Duration(20+rand.IntN(400)) * time.Millisecond)
		which := []string{"hub", "agent", "both"}[rand.IntN(3)]
		killed[which]++
		if which != "agent" {
			h.kill()
		}
		if which != "hub" {
			a.kill()
			a = start(t, fmt.Sprint("agent ", dir, " ", next()), heard)
		}
		if which != "agent" {
			time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
			h = start(t, "hub "+dir, heard)
		}
	}
	a.kill()
	drained := ""
	d := start(t, fmt.Sprint("agent ", dir, " 0"), func(text string) { drained += text })
	d.ended.Wait()
	h.kill()
	if len(saved) == 0 {
		t.Fatal("nothing was compared: no window reached the spool")
	}
	// What a kill cut off was not in the spool yet, so it is counted and not missed.
	if !strings.HasPrefix(drained, "drained") || strings.Contains(drained, outbox.DropDamaged) || strings.Contains(drained, outbox.DropRefused) {
		t.Errorf("the last agent said %q", drained)
	}
	t.Logf("killed %v; %d windows were in the spool; %s", killed, len(saved), drained)
	compare(t, filepath.Join(dir, "status.db"), saved)
}

func prepare(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_ = l.Close()
	clitest.WriteFile(t, filepath.Join(dir, "address"), at)
	clitest.WriteFile(t, filepath.Join(dir, "hub.yaml"), fmt.Sprintf("listen: %s\npage: ''\nnames: [127.0.0.1]\nauthority: %s/ca\nsqlite: %s/status.db\n", at, dir, dir))
	authority, err := ca.Open(filepath.Join(dir, "ca"), true)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Pair("db-7")
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "host.pem"), pair, 0o600), os.WriteFile(filepath.Join(dir, "hub-ca.pem"), authority.Certificate(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// compare: a decision is a row of its own each time that it is written, so twice shows.
func compare(t *testing.T, file string, saved map[string]bool) {
	t.Helper()
	s, err := sqlite.Open(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for what, query := range map[string]string{
		"decisions": "SELECT workload, count(*) FROM events GROUP BY workload",
		"windows":   "SELECT s.workload, count(*) FROM windows w JOIN series s ON s.id = w.series GROUP BY s.workload",
	} {
		table, err := s.SQL(context.Background(), query, 1_000_000)
		if err != nil {
			t.Fatal(err)
		}
		times := map[string]string{}
		for _, row := range table.Rows {
			times[fmt.Sprint(row[0])] = fmt.Sprint(row[1])
			if fmt.Sprint(row[1]) != "1" {
				t.Errorf("%s of %v are there %v times", what, row[0], row[1])
			}
		}
		for name := range saved {
			if times[name] == "" {
				t.Errorf("%s of %s were in the spool and are lost", what, name)
			}
		}
	}
}
