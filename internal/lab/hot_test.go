// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// hotFound is the output of `homenode-lab hot`.
type hotFound struct {
	Heat struct {
		Source, How, Unit string
		Bytes             uint64
		Others            []string `json:"better_sources"`
	}
	Mappings []struct {
		Path       string
		Start, End uint64
		RSS        uint64 `json:"rss_bytes"`
		Hot        uint64 `json:"hot_bytes"`
	}
	Notes []string
}

// hotScript chases through 4 MiB, with 32 MiB more that are touched only once, and finds
// the hot part.
const hotScript = `
rm -f /tmp/hot-ready
homenode-load chase --ws 4MiB --extra 32MiB %s --bind-cpu 0 --bind-mem 1 --ready /tmp/hot-ready > /dev/null 2>&1 & L=$!
O=; %s
while [ ! -e /tmp/hot-ready ]; do kill -0 $L || exit 1; sleep 0.02; done
homenode-load control on > /dev/null
sleep 1
homenode-lab hot --pid $L %s
R=$?
homenode-load control off > /dev/null
kill $L $O
wait $L $O
exit $R
`

func findHot(t *testing.T, g *Guest, load, other, flags string) (found hotFound) {
	t.Helper()
	out := mustRun(t, g, "sh", "-c", fmt.Sprintf(hotScript, load, other, flags))
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%+v %q", found.Heat, found.Notes)
	for _, m := range found.Mappings {
		if m.RSS >= 1<<20 || m.Hot > 0 {
			t.Logf("%x-%x %s: %d KiB, %d KiB hot", m.Start, m.End, m.Path, m.RSS>>10, m.Hot>>10)
		}
	}
	return found
}

// findSampled searches until there are enough samples, as the note about it advises: a
// program's progress in a second depends on the host.
func findSampled(t *testing.T, g *Guest, load string) (found hotFound) {
	t.Helper()
	for seconds := 2; seconds <= 16; seconds *= 2 {
		found = findHot(t, g, load, "", fmt.Sprintf("--for %ds", seconds))
		if !strings.Contains(strings.Join(found.Notes, ""), "samples are few") {
			break
		}
	}
	return found
}

// Memory that a program goes through is hot, memory that it only holds is not:
// page by page with samples, mapping by mapping with referenced bits.
func TestLabHot(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	const ws, extra = 4 << 20, 32 << 20
	s := findSampled(t, g, "--thp off")
	if s.Heat.Source != "PMU samples" || s.Heat.How != "modelled" || s.Heat.Unit != "page" || len(s.Heat.Others) != 0 {
		t.Errorf("%+v", s.Heat)
	}
	if s.Heat.Bytes < ws*9/10 || s.Heat.Bytes > ws+extra/10 {
		t.Errorf("%d KiB are hot, want 4096, and no more than a tenth of the rest", s.Heat.Bytes>>10)
	}
	// only with huge pages are the two mappings not one: what aligns them lies between
	// and only with another program on its CPU do they leave the TLB (hot.tlbNote)
	other := "homenode-load chase --ws 64KiB --bind-cpu 0 > /dev/null 2>&1 & O=$!"
	// it has to have the CPU between two of the first's accesses
	var r hotFound
	for seconds := 1; seconds <= 16 && r.Heat.Bytes < ws; seconds *= 4 {
		r = findHot(t, g, "--thp on", other, fmt.Sprintf("--for %ds --source damon,idle,referenced", seconds))
	}
	if r.Heat.Source != "referenced bits (clear_refs)" || r.Heat.Unit != "mapping" || r.Heat.How != "measured" ||
		!strings.Contains(strings.Join(r.Heat.Others, "\n"), "CONFIG_DAMON_SYSFS") || !strings.Contains(strings.Join(r.Heat.Others, "\n"), "CONFIG_IDLE_PAGE_TRACKING") {
		t.Errorf("%+v", r.Heat)
	}
	if r.Heat.Bytes < ws || r.Heat.Bytes > ws+extra/10 {
		t.Errorf("by referenced bits %d KiB are hot, want 4096 and a little", r.Heat.Bytes>>10)
	}
	// a huge page with a sample anywhere is hot as a whole
	h := findSampled(t, g, "--thp on")
	if h.Heat.Bytes < ws || h.Heat.Bytes > ws+extra/10 {
		t.Errorf("of huge pages %d KiB are hot, want 4096 and a little", h.Heat.Bytes>>10)
	}
}
