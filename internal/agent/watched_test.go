// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/kernel"
)

func TestHintFaultsAndWatched(t *testing.T) {
	c, err := ParseConfig([]byte("hint_faults: always\nservices: [{name: a, match: /a/*, approved: true}, {name: b, match: /b/*}]\n"), "agent.yaml")
	if err != nil || c.Hints != kernel.HintsAlways {
		t.Fatalf("%q, %v", c.Hints, err)
	}
	a := &Agent{o: Options{Config: c}}
	if !a.watched("/a/1") || a.watched("/b/1") || a.watched("/c") {
		t.Error("watched: want the approved one alone")
	}
	if _, err := ParseConfig([]byte("hint_faults: often\n"), "agent.yaml"); err == nil || !strings.Contains(err.Error(), "hint_faults") {
		t.Errorf("often: %v", err)
	}
}

// A running agent is asked. A user who may not ask reads its file.
func TestReadStatusAsks(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, statusName), []byte(`{"schema":3,"rounds":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, socketName))
	if err != nil {
		t.Skip(err)
	}
	answer := http.StatusOK
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(answer)
		_, _ = w.Write([]byte(`{"schema":3,"rounds":7}`))
	}))
	if s, err := ReadStatus(dir); err != nil || s.Rounds != 7 {
		t.Errorf("asked: %d rounds, %v", s.Rounds, err)
	}
	answer = http.StatusServiceUnavailable
	if s, err := ReadStatus(dir); err != nil || s.Rounds != 1 {
		t.Errorf("not ready: %d rounds, %v", s.Rounds, err)
	}
	l.Close()
	if s, err := ReadStatus(dir); err != nil || s.Rounds != 1 {
		t.Errorf("gone: %d rounds, %v", s.Rounds, err)
	}
}
