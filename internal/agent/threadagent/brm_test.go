// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"testing"

	"homenode/internal/policy/brm"
	"homenode/internal/unit"
)

// The policy's verdict counts only if the operator gave none.
func TestBRMVerdicts(t *testing.T) {
	p := BRM{verdicts: map[string]brm.Verdict{"a": brm.Sensitive, "b": brm.Sensitive}}
	all := []Process{{ID: "a"}, {ID: "b", Sensitive: unit.Some(false)}, {ID: "c"}}
	p.Judge(all)
	if all[0].Verdict != "sensitive" || all[1].Verdict != "" || all[2].Verdict != "" {
		t.Errorf("%+v", all)
	}
}
