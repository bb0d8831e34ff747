// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/experiment"
	"homenode/internal/profiling"
	"homenode/internal/unit"
)

// keep writes a deployment whose trial showed a gain.
func keep(t *testing.T, folder, service string) {
	t.Helper()
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	d, err := profiling.BeginDeployment(profiling.Deployment{Service: service, Least: 0.02, Margin: 0.02, Replicas: []string{"/a"}}, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	d = d.Take(profiling.DeployTrial{Workload: "/a", At: at, Gain: profiling.Gain{Value: unit.Some(0.1), CI: experiment.Interval{Low: 0.05, High: 0.15, Coverage: 0.97}}})
	data, err := d.Encode()
	if err != nil || d.Phase != profiling.Kept {
		t.Fatal(err, d.Phase)
	}
	if err := os.WriteFile(DeploymentFile(folder, service), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// What is kept is approved as if by the file, in a check, too; a file that cannot be read approves
// nothing, and is told. Exclusions come after it.
func TestDeployedIsApproved(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "deploy")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	keep(t, folder, "shop")
	keep(t, folder, "gone") // no rule has it: it approves nothing
	if err := os.WriteFile(filepath.Join(folder, "other.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("state_dir: %s\nexcluded: [/shop/never]\nservices:\n  - {name: shop, match: /shop/*}\n  - {name: other, match: /other}\n", dir)
	file := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := ReadConfig(file, "")
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Services; !s[0].Approved || !s[0].Deployed || s[1].Approved || len(c.Unread) != 1 || !strings.Contains(c.Unread[0], "other.json") {
		t.Errorf("%+v, %q", s, c.Unread)
	}
	all, excluded := c.Replicas("shop", []string{"/shop/a", "/other", "/shop/never"})
	if fmt.Sprint(all, excluded) != "[/shop/a /shop/never] [/shop/never]" {
		t.Errorf("%q, %q", all, excluded)
	}
	check := CheckLayers(hostWith("/shop/a", "/other"), Layer{file, []byte(text)})
	if !check.OK() || !check.Services[0].Approved || check.Services[1].Approved || len(check.Warnings) != 1 || !strings.Contains(check.Warnings[0].Text, "other.json") {
		t.Errorf("%+v, %q", check.Services, texts(check.Warnings))
	}
	none, err := ParseConfig([]byte(text+"deployments: none\n"), "agent.yaml")
	if err != nil || none.withDeployed().Services[0].Approved {
		t.Errorf("deployments: none: %v", err)
	}
}

// What a running agent was asked to leave alone is known until that ends, and with the agent.
func TestExcludedNow(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	if got := ExcludedNow(dir, now); got != nil {
		t.Errorf("without an agent: %q", got)
	}
	s := Status{Schema: statusSchema, PID: os.Getpid(), Excluded: []Excluded{{Workload: "/shop/a", Until: now.Add(time.Hour)}, {Workload: "/shop/b", Until: now.Add(-time.Hour)}}}
	if err := s.write(dir, 0); err != nil {
		t.Fatal(err)
	}
	if got := ExcludedNow(dir, now); len(got) != 1 || got[0] != "/shop/a" {
		t.Errorf("%q", got)
	}
	s.PID = 1 << 30 // gone
	if err := s.write(dir, 0); err != nil {
		t.Fatal(err)
	}
	if got := ExcludedNow(dir, now); got != nil {
		t.Errorf("the agent is gone: %q", got)
	}
}
