// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/profile"
	"homenode/internal/snapshot"
	"homenode/internal/window"
)

// A file of homenode's that another command reads is named with that command.
func TestExplain(t *testing.T) {
	var recording, archive bytes.Buffer
	if _, err := window.NewRecorder(&recording, window.Recording{}.Machine, 1); err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "sys/x", Mode: 0o644}), w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"day.jsonl": {recording.String(), "homenode top --replay"}, "m.tar.gz": {archive.String(), "homenode topo --root"},
		"snap.json": {`{"schema":1,"at":"x","length_ns":1,"machine":{},"window":{"a":[1`, "homenode doctor --snapshot"},
		"prof.json": {`{"schema":1,"machine":{},"origin":"","used_cpus":""}`, "homenode bench show"},
		"stat.json": {`{"schema":2,"pid":1,"dry_run":true,"started":""}`, "homenode status"},
		"log.jsonl": {`{"schema":2,"at":"","seq":1,"action":"","kind":"bind"}` + "\n", "homenode why"},
		"other":     {"hello", ""}, "other.json": {`{"schema":1}`, ""}, "list": {"[1]", ""}, "empty": {"", ""},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Explain(path, errMade)
		if !errors.Is(err, errMade) || !strings.Contains(err.Error(), c.want) || c.want == "" && err != errMade {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := Explain(filepath.Join(dir, "none"), os.ErrNotExist); err != os.ErrNotExist {
		t.Error(err)
	}
}

var errMade = errors.New("made for the test")

// The names that tell a kind are those that the types have.
func TestKindsAreCurrent(t *testing.T) {
	snap, err := snapshot.Encode(snapshot.Snapshot{})
	if err == nil && !strings.Contains(kindOf(snap), "doctor") {
		t.Errorf("a snapshot is %q: %s", kindOf(snap), snap)
	}
	prof, err := profile.Encode(profile.Profile{})
	if err == nil && !strings.Contains(kindOf(prof), "bench show") {
		t.Errorf("a profile is %q: %s", kindOf(prof), prof)
	}
}

func FuzzKindOf(f *testing.F) {
	f.Add([]byte(`{"schema":1,"kind":"homenode-windows","period_ns":1}`))
	f.Fuzz(func(_ *testing.T, data []byte) { kindOf(data) })
}
