// SPDX-License-Identifier: Apache-2.0

package scenario

// Metric is a figure of services, of runs, or of both, that arms are compared by.
type Metric struct {
	Name, About string
	Less        bool // less is better
	Share       bool // 0 to 1
	// Either says whether there is a figure: a service without requests has no
	// latency, but one that starved has a throughput, 0.
	of  func(Service) (float64, bool) // nil: it is of runs only
	run func(Run) (float64, bool)     // nil: a run's is its services' together
}

// Names of metrics that others ask for by name.
const (
	Latency    = "latency"
	CPUPerOp   = "cpu_per_op"
	LocalRatio = "local_ratio"
	Throughput = "throughput"
)

// Metrics are all, in the order in which to show them. Claims use their names.
func Metrics() []Metric {
	return []Metric{
		{Name: Latency, About: "mean latency of a request, seconds", Less: true, of: func(s Service) (float64, bool) { return above(s.LatencyS) }},
		{Name: "p99", About: "99th percentile of latency, seconds: mean over periods and replicas of their estimates", Less: true, of: func(s Service) (float64, bool) { return above(s.P99S) }},
		{Name: CPUPerOp, About: "CPU seconds of an operation", Less: true, of: func(s Service) (float64, bool) { return above(s.CPUPerOp) }},
		{Name: LocalRatio, About: "local share of DRAM reads", Share: true, of: func(s Service) (float64, bool) { return s.LocalRatio, s.Ops > 0 }, run: func(r Run) (float64, bool) { return r.LocalRatio, true }},
		{Name: "ipc", About: "instructions per cycle", of: func(s Service) (float64, bool) { return above(s.IPC) }},
		{Name: Throughput, About: "operations done", of: func(s Service) (float64, bool) { return s.Ops, true }, run: opsOf},
		{Name: "unbind_ratio", About: "unbound share of approved workloads' time", Less: true, Share: true, run: func(r Run) (float64, bool) { return r.UnbindRatio, true }},
		{Name: "moved_bytes", About: "bytes of memory moved between nodes, of the whole run, warm-up included", Less: true, run: func(r Run) (float64, bool) { return r.MovedB, true }},
		{Name: "cpu_seconds", About: "CPU seconds of all workloads", Less: true, run: func(r Run) (float64, bool) { return r.CPUSeconds, true }},
		{Name: "binds", About: "workloads bound, of the whole run, warm-up included", run: func(r Run) (float64, bool) { return float64(r.Binds), true }},
		{Name: "unbinds", About: "workloads unbound, of the whole run, warm-up included", Less: true, run: func(r Run) (float64, bool) { return float64(r.Unbinds), true }},
		{Name: "refused", About: "steps refused, of the whole run, warm-up included", Less: true, run: func(r Run) (float64, bool) { return float64(r.Refused), true }},
	}
}

// above is for figures in which 0 says that there is none.
func above(v float64) (float64, bool) { return v, v > 0 }

func opsOf(r Run) (float64, bool) {
	sum := 0.0
	for _, s := range r.Services {
		sum += s.Ops
	}
	return sum, len(r.Services) > 0
}

// MetricOf finds one by its name.
func MetricOf(name string) (Metric, bool) {
	for _, m := range Metrics() {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// OfServices says whether services have it.
func (m Metric) OfServices() bool { return m.of != nil }

// Value is the metric of a service in a run; of service "", of the run: where a run
// has no such figure of its own, the mean of its services', weighted by their
// operations. False: there is none.
func (m Metric) Value(r Run, service string) (float64, bool) {
	if service == "" {
		return m.ofRun(r)
	}
	for _, s := range r.Services {
		if s.Name == service && m.of != nil {
			return m.of(s)
		}
	}
	return 0, false
}

func (m Metric) ofRun(r Run) (float64, bool) {
	if m.run != nil {
		return m.run(r)
	}
	sum, ops := 0.0, 0.0
	for _, s := range r.Services {
		if v, ok := m.of(s); ok {
			sum += float64(v * s.Ops)
			ops += s.Ops
		}
	}
	if !(ops > 0) {
		return 0, false
	}
	return sum / ops, true
}

// Over is an arm's figure over its seeds; its N is 0 if no run has it.
func (m Metric) Over(a Outcome, service string) Spread {
	var all []float64
	for _, run := range a.Runs {
		if v, ok := m.Value(run, service); ok {
			all = append(all, v)
		}
	}
	return SpreadOf(all)
}

// Against is how many times base's figure the arm's is, seed by seed; of all services
// both weighted by base's operations (pair). A seed in which one of them has none, or
// base's is 0, is left out: N is less than the seeds then, and 0 if there is nothing to
// compare.
func (m Metric) Against(a, base Outcome, service string) Spread {
	var ratios []float64
	EachPair(a, base, func(run, other Run) {
		v, b, ok := m.pair(run, other, service)
		if ratio := v / b; ok && b > 0 && finite(ratio) {
			ratios = append(ratios, ratio)
		}
	})
	return SpreadOf(ratios)
}

// pair is the metric of a run and of base's. The mean of all services has base's
// operations as weights on both sides, and only the services that both have a figure
// of: else an arm that drops the requests of a slow service would seem faster.
func (m Metric) pair(run, base Run, service string) (v, b float64, ok bool) {
	if service != "" || m.run != nil {
		v, ok = m.Value(run, service)
		b, okB := m.Value(base, service)
		return v, b, ok && okB
	}
	ops := 0.0
	for _, s := range base.Services {
		theirs, ok := m.of(s)
		ours, also := m.Value(run, s.Name)
		if ok && also {
			v += float64(ours * s.Ops)
			b += float64(theirs * s.Ops)
			ops += s.Ops
		}
	}
	return v / ops, b / ops, ops > 0
}
