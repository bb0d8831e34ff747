// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"homenode/internal/experiment"
	"homenode/internal/schema"
	"homenode/internal/unit"
)

// Deployment is a service that is rolled out on one host. There are too few replicas to compare with
// each other, so each is compared with itself: bound and unbound by turns (a trial).
//
//	trying ─▶ the first replica gains ─▶ each of the others is not hurt ─▶ kept
//	   └─────────────────┴─────────────────────────┴──▶ rolled back, with the reason
type Deployment struct {
	Schema  int         `json:"schema"`
	Service string      `json:"service"`
	Phase   DeployPhase `json:"phase"`
	Began   time.Time   `json:"began"`
	// Job is how every replica is measured; its workload and placements are those of each trial.
	Job Job `json:"job"`
	// Least is the gain that the first replica must show, Margin the harm that is to be excluded for the
	// others: shares of the time of an operation.
	Least  float64 `json:"least_ratio"`
	Margin float64 `json:"margin_ratio"`
	// Nodes are those that were asked for; "": those to which the agent would bind each replica.
	Nodes string `json:"asked_nodes"`
	// Replicas are the names of its workloads (schema.Name), in the order in which they are tried.
	Replicas []string      `json:"workload_ids"`
	Trials   []DeployTrial `json:"replica_trials"`
	Events   []DeployEvent `json:"deploy_steps"`
	// Told is how many of these the webhook was told, if there is one.
	Told int `json:"told_count"`
}

// DeploymentSchema is the version of Deployment.
const DeploymentSchema = 1

// MaxDeployment bounds a file of a deployment, bytes.
const MaxDeployment = 4 << 20

// DeployPhase is how far a deployment is.
type DeployPhase string

// The phases.
const (
	Trying     DeployPhase = "trying"
	Kept       DeployPhase = "kept" // the agent may bind it
	RolledBack DeployPhase = "rolled_back"
)

// DeployCode is the reason of a step. The codes mean what those of package rollout do.
type DeployCode string

// The codes.
const (
	DeployStarts   DeployCode = "starts"
	DeployProven   DeployCode = "proven"   // the first replica showed the gain
	DeployWidens   DeployCode = "widens"   // another replica is not hurt
	DeployComplete DeployCode = "complete" // all were tried
	DeployHarm     DeployCode = "harm"
	DeployNoGain   DeployCode = "no_gain"
	DeployNotSafe  DeployCode = "not_safe" // harm beyond the margin was not excluded
	DeployConstant DeployCode = "constant"
	DeployNewUnit  DeployCode = "new_unit"
	DeployGone     DeployCode = "gone" // a replica ended
	DeployOperator DeployCode = "operator"
)

// DeployTrial is what the trial of a replica showed.
type DeployTrial struct {
	Workload string      `json:"workload"`
	At       time.Time   `json:"at"`
	How      unit.Source `json:"how"`
	Nodes    string      `json:"nodes"`
	Shown    Shown       `json:"gain_shown"`
	Gain     Gain        `json:"time_gain"`
}

// DeployEvent is a step of the way.
type DeployEvent struct {
	At    time.Time    `json:"at"`
	Code  DeployCode   `json:"code"`
	Why   string       `json:"why,omitempty"` // an error's text, or a person's reason
	Trial *DeployTrial `json:"trial,omitempty"`
}

// Bounds of a deployment.
const (
	mostReplicas = 100
	mostEvents   = 1000
)

// BeginDeployment begins a deployment; earlier are the steps of those before, which stay on record.
func BeginDeployment(d Deployment, at time.Time, earlier []DeployEvent) (Deployment, error) {
	d.Schema, d.Phase, d.Began, d.Trials = DeploymentSchema, Trying, at, []DeployTrial{}
	if over := len(earlier) - mostEvents/2; over > 0 {
		earlier = earlier[over:]
	}
	d.Events = append(slices.Clone(earlier), DeployEvent{At: at, Code: DeployStarts})
	d.Told = len(earlier)
	return d, d.Validate()
}

// Validate refuses what cannot be carried out, or was written by no deployment.
func (d Deployment) Validate() error {
	switch n := len(d.Replicas); {
	case d.Service == "":
		return errors.New("deployment: the service has no name")
	case n == 0:
		return fmt.Errorf("deployment of %q: no workload of this host is a replica of it now", d.Service)
	case n > mostReplicas:
		return fmt.Errorf("deployment of %q: %d replicas on this host: want at most %d", d.Service, n, mostReplicas)
	case !(d.Least >= 0 && d.Least < 1):
		return fmt.Errorf("--least %v: want a share from 0 to below 1, such as 0.02", d.Least)
	case !(d.Margin > 0 && d.Margin < 1):
		return fmt.Errorf("--margin %v: want a share between 0 and 1, such as 0.02", d.Margin)
	case len(d.Trials) > n, len(d.Events) == 0, len(d.Events) > mostEvents, d.Told < 0, d.Told > len(d.Events), !slices.Contains([]DeployPhase{Trying, Kept, RolledBack}, d.Phase), d.Phase == Kept && len(d.Trials) != n:
		return fmt.Errorf("deployment of %q: its parts do not fit each other", d.Service)
	}
	for i, t := range d.Trials {
		if t.Workload != d.Replicas[i] {
			return fmt.Errorf("deployment of %q: its parts do not fit each other", d.Service)
		}
	}
	return nil
}

// DecodeDeployment reads a deployment.
func DecodeDeployment(data []byte) (Deployment, error) {
	return schema.Decode[Deployment](data, "deployment", DeploymentSchema)
}

// Encode writes a deployment.
func (d Deployment) Encode() ([]byte, error) { return schema.Encode(d, "deployment") }

// Next is the replica that is tried next; false: none.
func (d Deployment) Next() (workload string, ok bool) {
	if d.Phase != Trying || len(d.Trials) == len(d.Replicas) {
		return "", false
	}
	return d.Replicas[len(d.Trials)], true
}

// SameJob says that a deployment may be continued with these settings and replicas.
func (d Deployment) SameJob(o Deployment) bool {
	return d.Job.Same(o.Job) && d.Nodes == o.Nodes && d.Least == o.Least && d.Margin == o.Margin && slices.Equal(d.Replicas, o.Replicas)
}

// Take takes the trial of the next replica. The deployment that it was given stays as it is.
//
//  1. Harm that is shown ends it, whichever replica shows it.
//  2. The first replica must gain at least Least, with 95 %.
//  3. Each of the others must exclude harm of more than Margin, with 95 %: what is small for one is no
//     reason not to bind it where the first gains.
func (d Deployment) Take(t DeployTrial) Deployment {
	first := len(d.Trials) == 0
	d = d.clone()
	d.Trials = append(d.Trials, t)
	ci := t.Gain.CI
	known := t.Gain.Value.Known() && ci.Coverage >= experiment.Nominal
	switch {
	case known && ci.High < 0: // 1
		return d.back(DeployHarm, t)
	case first && !(known && ci.Low > d.Least): // 2
		return d.back(DeployNoGain, t)
	case !first && !(known && ci.Low > -d.Margin): // 3
		return d.back(DeployNotSafe, t)
	}
	code := DeployWidens
	if first {
		code = DeployProven
	}
	d.Events = append(d.Events, DeployEvent{At: t.At, Code: code, Trial: &t})
	if len(d.Trials) == len(d.Replicas) {
		d.Phase = Kept
		d.Events = append(d.Events, DeployEvent{At: t.At, Code: DeployComplete})
	}
	return d
}

// Stop ends a deployment for a reason from outside of its trials, also after its end.
func (d Deployment) Stop(code DeployCode, why string, at time.Time) Deployment {
	d = d.clone()
	d.Phase = RolledBack
	d.Events = append(d.Events, DeployEvent{At: at, Code: code, Why: why})
	return d
}

func (d Deployment) back(code DeployCode, t DeployTrial) Deployment {
	d.Phase = RolledBack
	d.Events = append(d.Events, DeployEvent{At: t.At, Code: code, Trial: &t})
	return d
}

func (d Deployment) clone() Deployment {
	d.Trials, d.Events = slices.Clip(d.Trials), slices.Clip(d.Events)
	return d
}

// Last is the last step.
func (d Deployment) Last() DeployEvent { return d.Events[len(d.Events)-1] }

// TrialOf is what a report says of a replica.
func TrialOf(workload string, r TrialReport, at time.Time) DeployTrial {
	return DeployTrial{Workload: workload, At: at, How: r.How, Nodes: r.Nodes, Shown: r.Shown, Gain: r.Time}
}

// plainName is a workload's name that means itself in a shell, in a path and in a query.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@:-]*$`)

// ForWorkload is a metric's text for one of several workloads: {workload} stands for the last part of
// its path. A name that could mean more than itself there is refused: whoever starts a workload may
// have chosen it.
func ForWorkload(metric, workload string) (string, error) {
	name := path.Base(workload)
	if PerWorkload(metric) && !plainName.MatchString(name) {
		return "", fmt.Errorf("--metric has %s, and the name %.80q could mean more than itself there: want letters, digits and _ . @ : - only", workloadPlace, name)
	}
	return strings.ReplaceAll(metric, workloadPlace, name), nil
}

const workloadPlace = "{workload}"

// PerWorkload says that a metric's text is another one for each workload.
func PerWorkload(metric string) bool { return strings.Contains(metric, workloadPlace) }
