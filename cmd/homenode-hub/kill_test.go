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
	lease = clickhouseLease
	c, err := hub.ReadConfig(filepath.Join(dir, "hub.yaml"))
	if err != nil {
		return err
	}
	return serve(context.Background(), c, io.Discard, nil)
}

// beAgent sends a window with a decision each few milliseconds, and prints which ones the
// spool has. With first 0 it only sends what an earlier one left, and ends.
func beAgent(dir string, first int) error {
	c := outboxOf(dir, "host", filepath.Join(dir, "spool"))
	o, err := outbox.New(c, slog.New(slog.DiscardHandler), outbox.Clock{})
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
		fmt.Println("sent", o.Status().Sent)
	}
}

// outboxOf is the configuration of an agent whose certificate prepare, or a test, put there.
func outboxOf(dir, host, spool string) outbox.Config {
	return outbox.Config{Address: "https://" + address(dir), CA: filepath.Join(dir, "hub-ca.pem"), Certificate: filepath.Join(dir, host+".pem"), Spool: spool, Budget: 64 * unit.MiB}
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

// killed are a hub and an agent that end at random moments, and what the spool had.
type killed struct {
	t     *testing.T
	dir   string
	h, a  *process
	mu    sync.Mutex
	saved map[string]bool
	last  int
	sent  int
}

func startKilled(t *testing.T, storeLine string) *killed {
	t.Helper()
	k := &killed{t: t, dir: prepare(t, storeLine), saved: map[string]bool{}}
	k.h, k.a = start(t, "hub "+k.dir, k.heard), start(t, fmt.Sprint("agent ", k.dir, " ", 1), k.heard)
	return k
}

func (k *killed) heard(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n, ok := strings.CutPrefix(text, "saved "); ok {
		k.saved["/w"+n] = true
		i, _ := strconv.Atoi(n)
		k.last = max(k.last, i)
	}
	if n, ok := strings.CutPrefix(text, "sent "); ok {
		k.sent, _ = strconv.Atoi(n)
	}
}

// sentSoFar is how many batches the agent that runs has got rid of.
func (k *killed) sentSoFar() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sent
}

// waitSent waits until batches arrive.
func (k *killed) waitSent() int {
	k.t.Helper()
	before := k.sentSoFar()
	for range 1200 {
		if now := k.sentSoFar(); now > before {
			return now
		}
		time.Sleep(100 * time.Millisecond)
	}
	k.t.Fatal("no batch arrived within two minutes")
	return 0
}

// again starts an agent anew. A window that was not heard of may be in the spool, too: its
// number is not used again.
func (k *killed) again() {
	k.mu.Lock()
	k.last += 1000
	next := k.last
	k.mu.Unlock()
	k.a = start(k.t, fmt.Sprint("agent ", k.dir, " ", next), k.heard)
}

// drain lets a last agent send everything, and ends the hub.
func (k *killed) drain() {
	k.t.Helper()
	k.a.kill()
	drained := ""
	start(k.t, fmt.Sprint("agent ", k.dir, " 0"), func(text string) { drained += text }).ended.Wait()
	k.h.kill()
	if len(k.saved) == 0 {
		k.t.Fatal("nothing was compared: no window reached the spool")
	}
	// What a kill cut off was not in the spool yet, so it is counted and not missed.
	if !strings.HasPrefix(drained, "drained") || strings.Contains(drained, outbox.DropDamaged) || strings.Contains(drained, outbox.DropRefused) {
		k.t.Errorf("the last agent said %q", drained)
	}
	k.t.Logf("%d windows were in the spool; %s", len(k.saved), drained)
}

func killPoints(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("HOMENODE_KILL_POINTS")); err == nil {
		return n
	}
	return usual
}

// Hub with its store, and agent, are killed at random moments. In the end everything that
// the spool had is in the store, once. test-full has 100 of these moments.
func TestKilledAnywhere(t *testing.T) {
	k := startKilled(t, "sqlite: DIR/status.db")
	killed := map[string]int{}
	for range killPoints(6) {
		time.Sleep(time.Duration(20+rand.IntN(400)) * time.Millisecond)
		which := []string{"hub", "agent", "both"}[rand.IntN(3)]
		killed[which]++
		if which != "agent" {
			k.h.kill()
		}
		if which != "hub" {
			k.a.kill()
			k.again()
		}
		if which != "agent" {
			time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
			k.h = start(t, "hub "+k.dir, k.heard)
		}
	}
	k.drain()
	t.Logf("killed %v", killed)
	s, err := sqlite.Open(context.Background(), filepath.Join(k.dir, "status.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	compare(t, s, k.saved, "SELECT workload, count(*) FROM events GROUP BY workload",
		"SELECT s.workload, count(*) FROM windows w JOIN series s ON s.id = w.series GROUP BY s.workload")
}

// prepare makes a folder with a hub's configuration and authority, and with the certificate of
// a host. The page has an address only with a line of its own.
func prepare(t *testing.T, storeLine string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	at := clitest.FreeAddress(t)
	if !strings.Contains(storeLine, "page: ") {
		storeLine += "\npage: ''"
	}
	clitest.WriteFile(t, filepath.Join(dir, "address"), at)
	clitest.WriteFile(t, filepath.Join(dir, "hub.yaml"), strings.NewReplacer("DIR", dir).Replace(fmt.Sprintf("listen: %s\nnames: [127.0.0.1]\nauthority: DIR/ca\n%s\n", at, storeLine)))
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
func compare(t *testing.T, s store.Store, saved map[string]bool, decisions, windows string) {
	t.Helper()
	for what, query := range map[string]string{"decisions": decisions, "windows": windows} {
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
