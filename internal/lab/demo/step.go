// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"fmt"
	"strings"

	"homenode/internal/unit"
)

// Step is the progress of a run. The guest writes one step per line to stderr, as
// JSON; its other messages are not JSON.
type Step struct {
	Stage string            `json:"stage"`
	Done  float64           `json:"done_model_s"` // of this stage
	Of    float64           `json:"of_model_s"`
	Local unit.Opt[float64] `json:"local_access_ratio"` // of the sensitive services, since the step before
}

// Stages of a run, in their order.
const (
	StageBoot    = "letting the guest's first minutes pass"
	StageLoad    = "starting the load"
	StageWarm    = "warming up"
	StageMeasure = "measuring"
	StageEnd     = "ending"
)

func (s Step) line() string {
	text, _ := json.Marshal(s) // none of its fields can fail
	return string(text)
}

// parseStep reads a line of the guest; ok is false if it is not a step.
func parseStep(line string) (s Step, ok bool) {
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &s) != nil {
		return Step{}, false
	}
	return s, s.Stage != ""
}

// String is the readable form: warming up 6 of 18 model-s, local 0.52.
func (s Step) String() string {
	text := s.Stage
	if s.Of > 0 {
		text += fmt.Sprintf(" %.0f of %.0f model-s", s.Done, s.Of)
	}
	if local, ok := s.Local.Get(); ok {
		text += fmt.Sprintf(", local %.2f", local)
	}
	return text
}

// modelSeconds is the run's progress, warm-up and measurement together.
func (s Step) modelSeconds(m Mix) float64 {
	switch s.Stage {
	case StageWarm:
		return s.Done
	case StageMeasure:
		return m.Warmup + s.Done
	case StageEnd:
		return m.Warmup + m.Measure
	}
	return 0
}
