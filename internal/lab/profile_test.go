// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"homenode/internal/model"
	"homenode/internal/profiling"
)

// profilePrograms are real programs, four threads or processes each. None of them is in
// what models learn from (sim/catalog, GenerateSharers).
var profilePrograms = []struct{ name, metric, command string }{
	{"chase", "output", "/tmp/rate chase --threads 4 --ws 4MiB --shared --ops 60000"},
	{"stream", "output", "/tmp/rate stream --threads 4 --ws 2MiB --triad --ops 300000"},
	{"rao", "output", "/tmp/rate rao --threads 4 --ws 1MiB --sharing 64KiB --share-every 8 --ops 100000"},
	{"sort", "time", "/tmp/four sort /tmp/words"},
	{"gzip", "time", "/tmp/four gzip -c /tmp/words"},
	{"sha256sum", "time", "/tmp/four sha256sum /tmp/words /tmp/words /tmp/words /tmp/words"},
	{"awk", "time", "/tmp/four awk {s+=$1*$1}END{print(s)} /tmp/words"},
	{"grep", "time", "/tmp/four grep -v -c 1.*2.*3 /tmp/words /tmp/words /tmp/words"},
}

const (
	// profileFour runs a command four times at once.
	profileFour = "#!/bin/sh\nfor i in 1 2 3 4; do \"$@\" > /dev/null & done\nwait\n"
	// profileRate runs a load, and prints its operations per second of the model's clock.
	profileRate = `#!/bin/sh
homenode-load "$@" --out /tmp/rate.json || exit 1
sed 's/.*"mhz":\([0-9]*\).*"ops":\([0-9]*\).*"start_cycles":\([0-9]*\),"end_cycles":\([0-9]*\).*/\1 \2 \3 \4/' /tmp/rate.json | awk '{print $2 * $1 * 1e6 / ($4 - $3)}'
`
)

// The error of a model that learned in the simulator, on real programs in the lab, beside the
// noise of two measurements there: at most twice that. HOMENODE_PROFILE_MODEL is that model
// (scripts/bench-profile.sh).
func TestLabProfilePrograms(t *testing.T) {
	t.Parallel()
	path := os.Getenv("HOMENODE_PROFILE_MODEL")
	if path == "" {
		t.Skip("HOMENODE_PROFILE_MODEL is not set: it takes some 10 minutes; make test-full sets it")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	g := guest(t, "opteron", "v2")
	for name, text := range map[string]string{"four": profileFour, "rate": profileRate} {
		if err := g.Put(t.Context(), "/tmp/"+name, 0o755, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, g, "sh", "-c", "seq 1 20000 > /tmp/words; homenode-load control on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	var errorSum, noiseSum, errors, noises float64
	for _, p := range profilePrograms {
		rows, left := profiled(t, g, p.name, p.metric, p.command)
		noise, off := against(t, &m, rows)
		t.Logf("%-10s two measurements differ by %.2f %%, the model is off by %.2f %%; speeds of the best %s; %s", p.name, 100*noise, 100*off, ofBest(rows), left)
		errorSum, noiseSum, errors, noises = errorSum+off, noiseSum+noise, errors+1, noises+1
	}
	off, noise := errorSum/errors, noiseSum/noises
	t.Logf("%d programs: the model is off by %.2f %%, two measurements differ by %.2f %%: %.2f times", len(profilePrograms), 100*off, 100*noise, off/noise)
	if off > 2*noise {
		t.Errorf("the model is off by more than twice the noise")
	}
}

// profiled runs 'homenode profile', and reads its rows.
func profiled(t *testing.T, g *Guest, name, metric, command string) ([]profiling.Row, string) {
	t.Helper()
	args := append([]string{"profile", "--vcpus", "4", "--metric", metric, "--application", name, "--saved", "/tmp/profile-state.json", "--rows", "/tmp/profile.parquet", "-o", "json", "--"}, strings.Fields(command)...)
	r, err := g.Run(t.Context(), append([]string{"homenode"}, args...)...)
	if err != nil || r.Exit != 0 {
		t.Fatalf("%s: exit %d, %v\n%s%s", name, r.Exit, err, r.Stdout, r.Stderr)
	}
	var report profiling.Report
	if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil || report.Outcome != "complete" || report.Job.Source != profiling.Lab {
		t.Fatalf("%s: %v\n%s", name, err, r.Stdout)
	}
	file, err := g.Fetch(t.Context(), "/tmp/profile.parquet")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[profiling.Row](bytes.NewReader(file), int64(len(file)))
	if err != nil || len(rows) != 4 {
		t.Fatalf("%s: %d rows, %v", name, len(rows), err)
	}
	if dir := os.Getenv("HOMENODE_PROFILE_ROWS"); dir != "" {
		if err := os.WriteFile(dir+"/"+name+".parquet", file, 0o644); err != nil {
			t.Error(err)
		}
	}
	return rows, fmt.Sprintf("retest %v", report.Retest)
}

// against is the mean difference of two measurements, and the model's mean error in the
// placements that were not probed, against another measurement than the probes'.
func against(t *testing.T, m *model.Model, rows []profiling.Row) (noise, off float64) {
	t.Helper()
	f := &m.Forests[0]
	var speeds []float64
	probed := map[int]bool{}
	for _, i := range f.Probes {
		speeds, probed[i] = append(speeds, rows[i].Speed), true
	}
	predicted, err := f.Predict(speeds)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		if want := m.Placements[i]; want.Nodes != r.Nodes || want.Scores != r.Scores {
			t.Fatalf("placement %d: the model has %+v, the guest %s %s", i, want, r.Nodes, r.Scores)
		}
		noise += math.Abs(r.Speed-r.SpeedAgain) / r.SpeedAgain / float64(len(rows))
		if !probed[i] {
			off += math.Abs(predicted[i].Speed*speeds[0]-r.SpeedAgain) / r.SpeedAgain / float64(len(rows)-len(f.Probes))
		}
	}
	return noise, off
}

func ofBest(rows []profiling.Row) (text string) {
	best := 0.0
	for _, r := range rows {
		best = max(best, r.Speed)
	}
	for _, r := range rows {
		text += fmt.Sprintf(" %.3f", r.Speed/best)
	}
	return text
}
