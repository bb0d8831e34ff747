// SPDX-License-Identifier: Apache-2.0

package measured

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/golden"
)

// folder has the tables; HOMENODE_MEASURED names another one with tables of the same kind.
func folder() (path string, own bool) {
	if path := os.Getenv("HOMENODE_MEASURED"); path != "" {
		return path, false
	}
	return "../../../../shared/facts/measured", true
}

func data(t *testing.T) (d Data, own bool) {
	t.Helper()
	dir, own := folder()
	for name, into := range map[string]*[]Row{"solo.csv": &d.Solo, "corun.csv": &d.CoRun, "placement-gold6130.csv": &d.Placements} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil && os.Getenv("CI") != "true" {
			t.Skipf("the measured figures are not there (with CI=true this fails): %v", err)
		} else if err != nil {
			t.Fatal(err)
		}
		*into, err = Read(f)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return d, own
}

// Every figure is compared, and the report in docs is of this run.
func TestMeasured(t *testing.T) {
	d, own := data(t)
	all := Sections(d)
	t.Log("\n" + Text(all))
	classes, placements, pays := all[0].Figures, all[1].Figures, all[2].Figures
	if classes["programs"] == 0 || placements["n"] == 0 || pays["most"] == 0 {
		t.Fatal("nothing was compared")
	}
	for name, ok := range map[string]bool{
		"expected hurt ranks at 0.85 and more":          classes["hurt"] >= 0.85,
		"0.85 where noise counts as equal":              classes["hurt tied"] >= 0.85,
		"never below the plain miss ratio":              classes["hurt"] >= classes["ratio"],
		"classes right for 70 % of those told":          classes["told"] > 0 && classes["right"] >= 0.7*classes["told"],
		"sign right for 95 % of the changed placements": placements["sign"] >= 0.95,
		"mean error of the factor at most 12 %":         placements["error"] <= 0.12,
		"Pays never saves more than the CPU time":       pays["most"] < 1,
	} {
		if !ok {
			t.Errorf("%s: %v", name, []any{classes, placements, pays})
		}
	}
	targets(t, classes["hurt"], placements["near"])
	if own {
		golden.Check(t, "../../../docs/results/measured.md", Markdown(all))
	}
}

// targets are those that are not met: with HOMENODE_TARGETS set they fail
// (scripts/check-measured.sh); every run only holds what was reached.
func targets(t *testing.T, hurt, near float64) {
	t.Helper()
	if os.Getenv("HOMENODE_TARGETS") == "" {
		return
	}
	if hurt < 0.85 {
		t.Errorf("NOT MET: expected hurt ranks at %.3f, 0.85 is the target", hurt)
	}
	if near < 1 {
		t.Errorf("NOT MET: the time saved is within a factor of 1.5 for %.0f %% of the placements that changed, all is the target", 100*near)
	}
}

// EP computes only: it is a sheep.
func TestComputeOnlyIsSheep(t *testing.T) {
	d, own := data(t)
	if !own {
		t.Skip("the program is of the own tables")
	}
	for _, row := range Classes(d).Rows {
		if row[0] == "EP" && row[4] != "sheep" {
			t.Errorf("%v", row)
		}
	}
}

func TestRead(t *testing.T) {
	rows, err := Read(strings.NewReader("a,b\n1,\n2,x\n"))
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v, %v", rows, err)
	}
	if _, ok := rows[0].number("b"); ok {
		t.Error("an empty field is not 0")
	}
	for _, bad := range []string{"", "a,b\n1\n", "a\n\"x\n"} {
		if rows, err := Read(strings.NewReader(bad)); err == nil || rows != nil {
			t.Errorf("%q: %v", bad, rows)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("a,b\n1,2\n")
	f.Fuzz(func(t *testing.T, text string) {
		if rows, err := Read(strings.NewReader(text)); err != nil && rows != nil {
			t.Errorf("%v with %d rows", err, len(rows))
		}
	})
}
