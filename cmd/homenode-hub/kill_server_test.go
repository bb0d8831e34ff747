// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"homenode/internal/hub"
)

// clickhouseLease is of hubs in these tests.
const clickhouseLease = 3 * time.Second

// server is a ClickHouse that this test starts and kills.
type server struct {
	t               *testing.T
	address, config string
	cmd             *exec.Cmd
}

func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command("clickhouse-server", "--config-file="+s.config)
	s.cmd.Dir = filepath.Dir(s.config)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for range 600 {
		if c, err := net.DialTimeout("tcp", s.address, time.Second); err == nil {
			_ = c.Close()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.t.Fatal("the server does not answer within a minute")
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// A store that is a server of its own is killed at random moments, mostly while it takes
// batches; the hub goes on. Everything that the spool had is in it in the end, once.
func TestKilledServer(t *testing.T) {
	s := &server{t: t, address: os.Getenv("HOMENODE_CLICKHOUSE"), config: os.Getenv("HOMENODE_CLICKHOUSE_CONFIG")}
	if s.config == "" {
		t.Skip("HOMENODE_CLICKHOUSE_CONFIG names no configuration of a server: scripts/test-clickhouse.sh does")
	}
	s.start()
	defer func() { s.kill() }()
	k := startKilled(t, fmt.Sprintf("clickhouse: {address: '%s'}", s.address))
	points, within := killPoints(5), 0
	for point := range points {
		before := k.waitSent()
		if point%2 == 0 { // however slow the host is, half of the kills come while batches arrive
			k.waitSent()
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		s.kill()
		if k.sentSoFar() > before {
			within++
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		s.start()
	}
	k.drain()
	t.Logf("%d kill points of the server, %d of them while batches arrived", points, within)
	if 2*within < points {
		t.Errorf("only %d of %d kill points were while batches arrived", within, points)
	}
	c := hub.DefaultConfig()
	c.ClickHouse.Address = s.address
	o, err := clickhouseOptions(c.ClickHouse)
	if err != nil {
		t.Fatal(err)
	}
	db, err := openClickHouse(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const counts = "WHERE attempt NOT IN (SELECT attempt FROM attempts GROUP BY attempt, roll HAVING sum(sign) > 0) GROUP BY workload"
	compare(t, db, k.saved, "SELECT workload, toInt64(count()) FROM events "+counts, "SELECT workload, toInt64(count()) FROM windows "+counts)
}
