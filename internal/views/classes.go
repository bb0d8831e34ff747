// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"homenode/internal/interference"
	"homenode/internal/policy/vmmap"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/unit"
	"homenode/internal/yamlfile"
)

// Classes prints the classes of workloads. own is the file of constants, if there is
// one; calibrated says that it has all constants of the machine.
func Classes(w io.Writer, r interference.Result, own string, calibrated bool) error {
	from, right := own, "Of 18 real programs that others measured, a class is told for 13 from windows alone, and sheep or not is right for all 13.\n"+
		"In the lab the class of 18 of 20 real programs was right if they were seen with less of a cache, too."
	if own == "" {
		from = "the defaults, from simulated machines"
	}
	if !calibrated {
		right = "Without constants of this machine, classes of workloads that were seen with less of a cache rest on simulated machines."
	}
	fmt.Fprintf(w, "%d windows, %s to %s\nconstants: %s\n\n", r.Windows, r.From.Format(time.DateTime), r.To.Format(time.DateTime), render.Printable(from))
	out, t := terminal(), render.LeftTable("WORKLOAD", "CLASS", "HURT", "HARM", "REMOTE", "SENSITIVE", "HOLDS OF A CACHE", "MARGIN", "WINDOWS")
	var doubts []string
	for _, wl := range r.Workloads {
		class := string(wl.Class)
		if wl.Class == vmmap.Unknown {
			class = "unknown"
		}
		t.Add(render.Name(wl.ID), class, between(wl.Hurt, wl.HurtRange), between(wl.Harm, wl.HarmRange), slower(wl.Remote), render.YesNo(wl.Sensitive), held(wl), margin(wl.Margin), strconv.Itoa(wl.Windows))
		if wl.Doubt != "" {
			doubts = append(doubts, fmt.Sprintf("%s: %s", render.Name(wl.ID), render.Printable(wl.Doubt)))
		}
	}
	out.Table(t)
	if err := out.Flush(w, "classes"); err != nil {
		return err
	}
	if len(doubts) > 0 {
		fmt.Fprintln(w, "\nin doubt:")
	}
	for _, d := range doubts {
		fmt.Fprintln(w, "  "+d)
	}
	fmt.Fprintf(w, "\nhurt: how much longer the workload takes next to a stream in its cache; harm: how much longer a chase over half of the\n"+
		"cache takes next to the workload; remote: how much longer the workload takes with all of its memory at distance 20;\n"+
		"holds: the mean; margin: 0 (at the border of another class) to 1.\n"+
		"An interval in brackets: it was never seen with less of a cache; from traffic or misses, requests and waits, fitted on 18 real programs.\n"+
		"All figures are estimated from counters, which are %s.\n%s\n", howCounted(r), right)
	for _, n := range r.Notes {
		fmt.Fprintln(w, "note: "+render.Printable(n))
	}
	return nil
}

// between is a slowdown with its interval, where it has one.
func between(v unit.Value[float64], in unit.Opt[vmmap.Range]) string {
	r, ok := in.Get()
	if !ok {
		return slower(v)
	}
	return fmt.Sprintf("%s (%s–%s)", slower(v), render.Percent(r.Low), render.Percent(r.High))
}

// howCounted is "measured", or the source of the counters.
func howCounted(r interference.Result) string {
	how := map[string]bool{}
	var all []string
	for _, wl := range r.Workloads {
		if text := wl.Counted.String(); !how[text] && wl.Counted != unit.HowUnknown {
			how[text] = true
			all = append(all, text)
		}
	}
	return render.OrUnknown(render.List(all))
}

func slower(v unit.Value[float64]) string { return render.Show(v.V, render.Percent) }

func margin(v unit.Opt[float64]) string {
	if x, ok := v.Get(); ok {
		return render.Fixed(x, 2)
	}
	return "-"
}

// held is "120 KiB" if that is counted, "about 120 KiB" or "100 KiB to 120 KiB", or unknown.
func held(wl interference.Workload) string {
	low, ok := wl.Low.Get()
	high, ok2 := wl.High.Get()
	switch {
	case !ok || !ok2:
		return render.Unknown
	case low.String() != high.String():
		return low.String() + " to " + high.String()
	case wl.Held == unit.HowEstimated:
		return "about " + low.String()
	}
	return low.String()
}

// ConstantsForm is what Constants writes as JSON.
type ConstantsForm struct {
	Schema    int         `json:"schema"` // 1
	From      []string    `json:"references"`
	Constants vmmap.Infer `json:"constants"`
}

// Constants prints a file for --constants; notes name its sources.
func Constants(w io.Writer, f vmmap.Infer, notes []string, output string) error {
	if output == "json" {
		return schema.NewEncoder(w).Encode(ConstantsForm{1, notes, f})
	}
	text, err := yamlfile.Encode(f)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "# Constants of a machine, for 'homenode classes --constants'. From:")
	for _, n := range notes {
		fmt.Fprintln(w, "#   "+render.Printable(n))
	}
	_, err = w.Write(text)
	return err
}
