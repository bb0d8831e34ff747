// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"homenode/internal/agent"
	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
	"homenode/internal/source"
)

// A profile that the agent cannot use is one warning; the agent starts without it.
func TestAgentProfile(t *testing.T) {
	dir := t.TempDir()
	config := func(profile string) string {
		return clitest.WriteFile(t, filepath.Join(dir, "agent.yaml"), "profile: "+profile+"\n")
	}
	for profile, want := range map[string]string{
		filepath.Join(dir, "none.json"):                                            "none.json",
		clitest.WriteFile(t, filepath.Join(dir, "cut.json"), `{"schema":1`):        "parse profile",
		clitest.WriteFile(t, filepath.Join(dir, "newer.json"), `{"schema":99999}`): "newer homenode",
		profileOf(t, shapeMachine(t, "opteron")):                                   "another machine",
	} {
		code, text := runCaught(t, "agent", "--config", config(profile), "--state", dir, "--rounds", "1", "--dry-run")
		if code != exit.Done || !strings.Contains(text, "homenode: warning: profile of the configuration: ") || !strings.Contains(text, want) {
			t.Errorf("%s: exit code %d, %q, want %q", profile, code, text, want)
		}
	}
	ownProfile(t)
	unreadableProfile(t, config(profileOf(t, shapeMachine(t, "opteron"))))
}

// unreadableProfile reads a configuration whose profile only root may read, as another user.
func unreadableProfile(t *testing.T, file string) {
	t.Helper()
	c, err := agentConfig(file, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.Profile, 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // the file system takes this thread for nobody's
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0)
		defer syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0)
	}
	err = useProfile(&c)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "profile of the configuration: ") || c.Actuate.Profile != nil {
		t.Errorf("a profile that may not be read: %v", err)
	}
}

func ownProfile(t *testing.T) {
	t.Helper()
	m, _, err := source.Live()
	if err != nil {
		t.Skipf("this host's machine cannot be read: %v", err)
	}
	c := agent.Config{Profile: profileOf(t, m)}
	if err := useProfile(&c); err != nil || c.Actuate.Profile == nil {
		t.Errorf("this machine's own profile: %v", err)
	}
}

// An agent that has just started has no status yet: status waits for its first round.
func TestStatusWaitsForTheFirstRound(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "api.sock"))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(agent.Status{Schema: 3, PID: os.Getpid(), Started: time.Now()})
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	code, text, errs := clitest.Run(rootCommand(), "status", "--state", dir)
	if code != exit.Done || errs != "homenode: the agent has just started: waiting for the end of its first round\n" || text == "" || asked != 3 {
		t.Errorf("exit code %d, asked %d times, %q\n%s", code, asked, errs, text)
	}
}
