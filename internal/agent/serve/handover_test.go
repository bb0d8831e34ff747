// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"strings"
	"testing"
	"time"

	"homenode/internal/agent"
	"homenode/internal/exit"
)

// A refusal since the request ends the wait with the agent's reason; an older one does not.
func TestHandoverRefused(t *testing.T) {
	old := &agent.Handover{At: time.Unix(100, 0), Error: "bad configuration"}
	before := agent.Status{PID: 7, Handover: old}
	if err := refusedSince(before, before); err != nil {
		t.Errorf("an older refusal: %v", err)
	}
	if err := refusedSince(before, agent.Status{PID: 7}); err != nil {
		t.Errorf("no refusal: %v", err)
	}
	for later, code := range map[bool]int{true: exit.Partly, false: exit.Failed} {
		now := agent.Status{PID: 7, Handover: &agent.Handover{At: time.Unix(101, 0), Error: "calls hang", Later: later}}
		err := refusedSince(before, now)
		if err == nil || !strings.Contains(err.Error(), "pid 7, continues as the old program: calls hang") {
			t.Fatalf("a refusal: %v", err)
		}
		got := exit.Failed
		var e exit.Error
		if errors.As(err, &e) {
			got = e.Code
		}
		if got != code {
			t.Errorf("later %v: exit code %d, want %d", later, got, code)
		}
	}
}

// A program that hangs, fails or answers with something else is no answer.
func TestAsk(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"it would start":  {`echo '{"mode": "act", "owners": {"state_dir": "/s"}}'`, ""},
		"it would not":    {`echo '{"errors": [{"text": "bad"}]}'; exit 2`, ""},
		"it hangs":        {"sleep 60 & wait", "did not end within"},
		"no JSON":         {"echo this", "invalid character"},
		"it fails":        {"echo 'homenode: no such file' >&2; echo more >&2; exit 2", `exit status 2: "homenode: no such file"`},
		"it floods":       {"yes", "more than 16777216 bytes"},
		"it complains":    {"yes >&2", "more than 16777216 bytes"},
		"it tells no one": {`[ -z "$NOTIFY_SOCKET" ] && echo {}`, ""},
	} {
		t.Setenv("NOTIFY_SOCKET", "/run/there")
		limit := time.Minute
		if strings.Contains(c.want, "end within") {
			limit = 100 * time.Millisecond
		}
		got, err := askProgram(t.Context(), limit, "/bin/sh", []string{"-c", c.script})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if name == "it would not" && len(got.Errors) != 1 {
			t.Errorf("%+v", got)
		}
	}
	if _, err := askProgram(t.Context(), time.Minute, "/nonexistent", nil); err == nil {
		t.Error("a program that is not there answered")
	}
}
