// SPDX-License-Identifier: Apache-2.0

package scenario

// Metric is a figure of services, of runs, or of both, by which arms are compared.
type Metric struct {
	Name, About string
	Less        bool // less is better
	Share       bool // 0 to 1
	// Both report whether there is a figure: a service without requests has no latency, but
	// one that starved has a throughput, 0.
	of  func(Service) (float64, bool) // nil: only runs have it
	run func(Run) (float64, bool)     // nil: a run's figure combines its services'
}

// Names of metrics that other packages use.
const (
	Latency    = "latency"
	CPUPerOp   = "cpu_per_op"
	LocalRatio = "local_ratio"
	Throughput = "throughput"
)

// Metrics lists all metrics, in the order in which they are shown. Claims use their names.
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

// above is for figures in which 0 means that there is none.
func above(v float64) (float64, bool) { return v, v > 0 }

func opsOf(r Run) (float64, bool) {
	sum := 0.0
	for _, s := range r.Services {
		sum += s.Ops
	}
	return sum, len(r.Services) > 0
}

// MetricOf finds a metric by its name.
func MetricOf(name string) (Metric, bool) {
	for _, m := range Metrics() {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// OfServices reports whether services have it.
func (m Metric) OfServices() bool { return m.of != nil }

// Value is the metric of a service in a run. For service "" it is the run's: where a run
// has no figure of its own, it is the mean of its services' figures, weighted by their
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
			sum += v * s.Ops
			ops += s.Ops
		}
	}
	if !(ops > 0) {
		return 0, false
	}
	return sum / ops, true
}

// Over is an arm's figure over its seeds; N is 0 if no run has it.
func (m Metric) Over(a Outcome, service string) Spread {
	var all []float64
	for _, run := range a.Runs {
		if v, ok := m.Value(run, service); ok {
			all = append(all, v)
		}
	}
	return SpreadOf(all)
}

// Against is the ratio of the arm's figure to base's, seed by seed; for all services both
// are weighted by base's operations (pair). A seed in which either has none, or base's is
// 0, is left out: then N is smaller than the number of seeds, and 0 if there is nothing to
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

// pair is the metric of a run and of base's. The mean over all services has base's
// operations as weights on both sides, and covers only services with a figure on both
// sides. Otherwise an arm that drops the requests of a slow service would seem faster.
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
			v += ours * s.Ops
			b += theirs * s.Ops
			ops += s.Ops
		}
	}
	return v / ops, b / ops, ops > 0
}
