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
