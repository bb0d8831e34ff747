// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"homenode/internal/profile"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/memsys"
)

func rows(n int) []Row {
	r := detmath.NewRandom(1, "rows")
	some := func() *float64 {
		v := r.Float()
		if v < 0.1 {
			return nil
		}
		return &v
	}
	all := make([]Row, n)
	for i := range all {
		all[i] = Row{
			Server: fmt.Sprint("server", i%7), Service: fmt.Sprint("service", i%3), Replica: fmt.Sprint(i), Machine: "fake:two", GeneratorVersion: 1, Seed: 1<<63 + 5, How: "modelled",
			WindowsBefore: 30, MBW: some(), MSR: some(), NPMR: some(), RMBR: some(), LocalAccessRatio: some(), CPU: some(), RSS: some(), IPC: some(), CPULimit: some(), LoadFactor: some(), LLCMPKI: some(),
			Bound: i%3 > 0, WindowsCompared: int32(i), NeighboursBound: some(), LocalAccessRatioOn: some(), GainLatency: some(), GainCPU: some(), GainIPC: some(), GainLatencyTrue: some(), GainCPUTrue: some(), GainIPCTrue: some(),
		}
	}
	return all
}

var about = func() TableAbout {
	c := DefaultConfig()
	c.Machine, c.System = memsys.DualSkylake()
	c.Seed, c.Noise = 5, Noise{Schema: 1, Source: "none", Unmeasured: true}
	return TableAbout{Command: "homenode-lab sim fleet --seed 5", Config: c}
}()

func write(t testing.TB, about TableAbout, all []Row, parts int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewTableWriter(&b, about)
	if err != nil {
		t.Fatal(err)
	}
	for len(all) > 0 {
		n := min(len(all), parts)
		if err := w.Write(all[:n]); err != nil {
			t.Fatal(err)
		}
		all = all[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(t *testing.T, data []byte) ([]Row, map[string]string) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	about := map[string]string{}
	for _, kv := range f.Metadata().KeyValueMetadata {
		about[kv.Key] = kv.Value
	}
	rows := make([]Row, f.NumRows())
	r := parquet.NewGenericReader[Row](f)
	if n, err := r.Read(rows); n != len(rows) || err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("read %d of %d rows: %v", n, len(rows), err)
	}
	return rows, about
}

func TestReadsBack(t *testing.T) {
	want := rows(25_000) // more than two row groups
	got, meta := read(t, write(t, about, want, 17))
	if !reflect.DeepEqual(got, want) {
		t.Error("other rows")
	}
	for key, v := range map[string]string{
		KeySchema: "2", KeyGenerator: "1", KeySeed: "5", KeyCommand: about.Command, KeyMachine: about.Config.Machine.Origin, KeyGain: GainMeaning, KeyProfileDigest: "none", KeyHow: "modelled", KeyNoise: "none: unmeasured",
	} {
		if meta[key] != v {
			t.Errorf("%s is %q, want %q", key, meta[key], v)
		}
	}
	if got, _ := read(t, write(t, about, nil, 1)); len(got) != 0 {
		t.Errorf("an empty data set: %d rows", len(got))
	}
}

func TestSameRowsSameBytes(t *testing.T) {
	a := write(t, about, rows(12_000), 100)
	if !bytes.Equal(a, write(t, about, rows(12_000), 100)) {
		t.Error("the bytes differ from one time to the next")
	}
	if !bytes.Equal(a, write(t, about, rows(12_000), 12_000)) {
		t.Error("the bytes depend on how many rows come at a time")
	}
}

// Placeholders are never presented as measured.
func TestNoiseIsNotClaimed(t *testing.T) {
	measured := about
	measured.Config.Noise = Noise{Schema: 1, Source: "the lab, shape two", Repeats: 9}
	_, meta := read(t, write(t, measured, nil, 1))
	if meta[KeyNoise] != "measured, 9 repeats: the lab, shape two" {
		t.Errorf("%q", meta[KeyNoise])
	}
}

// What decides the rows and comes from files of its own has a digest, and a change changes
// only that digest.
func TestDigests(t *testing.T) {
	_, want := read(t, write(t, about, nil, 1))
	for key, change := range map[string]func(*Config){
		KeyNoiseDigest:    func(c *Config) { c.Noise.Repeats = 9 },
		KeyMachineDigest:  func(c *Config) { c.System.Hz++ },
		KeyProfileDigest:  func(c *Config) { c.Actuate.Profile = &profile.Profile{} },
		KeySettingsDigest: func(c *Config) { c.Linux.NUMABalancing = false },
	} {
		other := about
		change(&other.Config)
		_, got := read(t, write(t, other, nil, 1))
		for k, v := range want {
			if (got[k] == v) == (k == key) {
				t.Errorf("%s: %s was %q and is %q", key, k, v, got[k])
			}
		}
	}
	other := about
	other.Config.System.Hz = math.NaN()
	if w, err := NewTableWriter(io.Discard, other); err == nil || w != nil {
		t.Error("a machine without a digest was written")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteSaysWhy(t *testing.T) {
	w, err := NewTableWriter(broken{}, about)
	if err == nil {
		err = w.Write(rows(100))
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("error %v", err)
	}
}

// Other readers read it, too, where they are installed.
func TestPythonReadsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.parquet")
	if err := os.WriteFile(path, write(t, about, rows(500), 500), 0o644); err != nil {
		t.Fatal(err)
	}
	python := os.Getenv("HOMENODE_PYTHON")
	if python == "" {
		python = "python3"
	}
	read := 0
	for module, script := range map[string]string{
		"pyarrow": "import sys, pyarrow.parquet as p; t = p.read_table(sys.argv[1]); m = t.schema.metadata; print(t.num_rows, t.column('replica_hash')[499].as_py(), t.column('mbw_bytes_per_s').null_count, m[b'homenode.how'].decode())",
		"duckdb":  "import sys, duckdb; print(*duckdb.sql(f\"select count(*), max_by(replica_hash, windows_compared), count(*) - count(mbw_bytes_per_s), any_value(how) from '{sys.argv[1]}'\").fetchall()[0])",
	} {
		if exec.Command(python, "-c", "import "+module).Run() != nil {
			t.Logf("skipped: %s has no %s", python, module)
			continue
		}
		out, err := exec.Command(python, "-c", script, path).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", module, err, out)
			continue
		}
		none := 0
		for _, r := range rows(500) {
			if r.MBW == nil {
				none++
			}
		}
		if want := fmt.Sprintf("500 499 %d modelled\n", none); string(out) != want {
			t.Errorf("%s reads %q, want %q", module, out, want)
		}
		read++
	}
	if read == 0 {
		t.Skipf("%s has neither pyarrow nor duckdb (HOMENODE_PYTHON names another)", python)
	}
}
