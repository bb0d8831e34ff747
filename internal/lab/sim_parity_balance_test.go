// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"homenode/internal/sim/parity"
)

// atHomeShare is the share of the memory that must have come home.
const atHomeShare = 0.9

// balanceScript counts the pages that NUMA balancing moves, as often as possible: a
// reading of /proc/vmstat takes some 0.2 s. Nothing else in the guest has pages to move.
// Balancing is switched on before the load's start, or after. The model is off until the
// load is ready: then setting up takes less than the scan's delay.
func balanceScript(c parity.Convergence) string {
	start, running := "1", ":"
	if c.Running {
		start, running = "0", "sleep 1.5; look; echo 1 > /proc/sys/kernel/numa_balancing"
	}
	return fmt.Sprintf(`set -u
rm -rf /tmp/par; mkdir -p /tmp/par; cd /tmp/par
mount -t debugfs none /sys/kernel/debug 2> /dev/null
look() { read up rest < /proc/uptime; echo "$up $(grep numa_pages_migrated /proc/vmstat)"; }
homenode-load control off > /dev/null
echo %s > /proc/sys/kernel/numa_balancing
echo == start; look > first; cat first
timeout 170 homenode-load %s --seconds 100000 --out r --ready p < /dev/null > o 2>&1 &
n=0; until [ -e p ]; do n=$((n + 1)); [ $n -lt 600 ] || { cat o >&2; exit 1; }; sleep 0.02; done
homenode-load control on > /dev/null
echo == curve
%s
n=0
while [ $n -lt 500 ]; do
	n=$((n + 1)); sleep 0.01
	look > s; cat s
	read up name moved < s
	[ ${moved:-0} -lt $(($(sed -n '/numa_pages/s/.* //p' first) + %d * 97 / 100)) ] || break
done
echo 0 > /proc/sys/kernel/numa_balancing
kill $(cat p); wait
homenode-load control off > /dev/null
`, start, c.Args, running, wsOf(c)/4096)
}

// wsOf is how much memory moves, bytes.
func wsOf(c parity.Convergence) int {
	each, threads := 0, 1
	f := strings.Fields(c.Args)
	for i := range f {
		switch f[i] {
		case "--ws":
			fmt.Sscanf(f[i+1], "%dMiB", &each)
		case "--threads":
			fmt.Sscanf(f[i+1], "%d", &threads)
		}
	}
	return each * threads << 20
}

func (p *parityBench) converge(t *testing.T, c parity.Convergence) {
	g := guest(t, c.Shape, "v2")
	m := parity.Converged{Case: c.Name, Shape: c.Shape, Args: c.Args, Origin: originOf(t, g), Scan: map[string]string{}}
	for range p.repeats {
		r, err := convergeOnce(t.Context(), g, c)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			return
		}
		m.Runs = append(m.Runs, r)
		fmt.Printf("%-24s %.2f model s, %d samples\n", c.Name, r.ModelSeconds, len(r.Curve))
	}
	const where = "/sys/kernel/debug/sched/numa_balancing/"
	for name := range strings.FieldsSeq(mustRun(t, g, "ls", where)) {
		m.Scan[name] = strings.TrimSpace(mustRun(t, g, "cat", where+name))
	}
	p.record.Convergences = append(p.record.Convergences, m)
	p.save(t)
}

func convergeOnce(ctx context.Context, g *Guest, c parity.Convergence) (r parity.ConvergedRun, err error) {
	ctx, cancel := g.Within(ctx, 4*time.Minute)
	defer cancel()
	out, err := g.Run(ctx, "sh", "-c", balanceScript(c))
	if err != nil || out.Exit != 0 {
		return r, fmt.Errorf("exit %d, %v: %.500s", out.Exit, err, out.Stderr)
	}
	in := sections(out.Stdout)
	start, err := readMoved(in["start"])
	if err != nil {
		return r, err
	}
	from := start
	if !c.Running {
		r.Curve = append(r.Curve, parity.CurveSample{})
	}
	for i, line := range strings.Split(strings.TrimSpace(in["curve"]), "\n") {
		s, err := readMoved(line)
		if err != nil {
			return r, err
		}
		if i == 0 && c.Running {
			from = s
		}
		r.Curve = append(r.Curve, parity.CurveSample{ModelSeconds: s.up - from.up, Local: 4096 * (s.moved - start.moved) / float64(wsOf(c))})
	}
	return r, r.Settle(atHomeShare)
}

// movedBy is what was counted at a time.
type movedBy struct{ up, moved float64 }

func readMoved(line string) (m movedBy, err error) {
	line, _, _ = strings.Cut(strings.TrimSpace(line), "\n")
	if _, err := fmt.Sscanf(line, "%f numa_pages_migrated %f", &m.up, &m.moved); err != nil {
		return m, fmt.Errorf("read look %q: %w", line, err)
	}
	return m, nil
}
