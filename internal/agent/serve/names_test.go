// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/agent"
	"homenode/internal/window"
)

// Cgroups whose names differ only in bytes that are no text are told apart by the API: each
// answer has a name that the API accepts, for each of them alone.
func TestNamesThatAreNoText(t *testing.T) {
	a := full(t)
	v := &a.view.Status
	ids := []string{"/demo/a", "/demo/x\xfe", "/demo/x\xff", `/demo/x\xff`, "/demo/x\uFFFD"}
	first, of := v.Window.Workloads[0], v.Workloads[0]
	v.Window.Workloads, v.Workloads = nil, nil
	for _, id := range ids {
		first.ID, of.ID, of.Service = id, id, ""
		v.Window.Workloads, v.Workloads = append(v.Window.Workloads, first), append(v.Workloads, of)
	}
	s := serverOf(t, a)
	h := s.Handler()
	answer := func(method, target string, into any) {
		t.Helper()
		w := ask(s, h, root, method, target)
		if w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), into) != nil {
			t.Fatalf("%s %s: %d %s", method, target, w.Code, w.Body)
		}
	}
	var status agent.Status
	answer("GET", "/v1/status", &status)
	var list Workloads
	answer("GET", "/v1/workloads", &list)
	names := map[string]bool{}
	for i, w := range list.Workloads {
		names[w.ID] = true
		path := "/v1/workloads/" + url.PathEscape(w.ID)
		var e Exclusion
		answer("PUT", path+"/exclusion?for=1h", &e)
		if _, ok := a.excluded[ids[i]]; !ok || e.Workload != w.ID || len(a.excluded) != 1 {
			t.Errorf("%q: excluded are %q, the answer is %q", w.ID, a.excluded, e.Workload)
		}
		var why Why
		if answer("GET", path+"/why", &why); why.Workload.ID != w.ID {
			t.Errorf("why of %q is of %q", w.ID, why.Workload.ID)
		}
		if answer("DELETE", path+"/exclusion", &e); len(a.excluded) != 0 || e.Workload != w.ID {
			t.Errorf("%q: still excluded are %q", w.ID, a.excluded)
		}
	}
	if len(names) != len(ids) || !names[`bytes:/demo/x\xff`] || !names[`/demo/x\xff`] {
		t.Errorf("names: %v", names)
	}
	if !slices.IsSortedFunc(status.Window.Workloads, func(a, b window.Workload) int { return strings.Compare(a.ID, b.ID) }) || len(status.Workloads) != len(ids) {
		t.Error("the status is not in order")
	}
	for i, w := range status.Workloads {
		if status.Window.Workloads[i].ID != w.ID || !names[w.ID] {
			t.Errorf("%q stands beside %q", w.ID, status.Window.Workloads[i].ID)
		}
	}
	if v.Workloads[1].ID != "/demo/x\xfe" {
		t.Error("the agent's own status was changed")
	}
	a.excluded["/gone/\xff"] = time.Now()
	if w := ask(s, h, root, "DELETE", "/v1/workloads/"+url.PathEscape("nothing")+"/exclusion"); w.Code != http.StatusNotFound {
		t.Errorf("%d", w.Code)
	}
}

// Every answer says the version of its form.
func TestEveryAnswerHasASchema(t *testing.T) {
	answers := []any{Failure{}}
	for _, r := range routes() {
		if r.answer != nil && r.pattern != "/v1/openapi.json" {
			answers = append(answers, r.answer)
		}
	}
	for _, a := range answers {
		if f, ok := reflect.TypeOf(a).FieldByName("Schema"); !ok || f.Tag.Get("json") != "schema" {
			t.Errorf("%T has no schema", a)
		}
	}
	until := time.Unix(0, 0)
	f := &fake{view: &agent.View{Status: agent.Status{Workloads: []agent.WorkloadStatus{{ID: "/a", Service: "s", Labels: window.Labels{Container: "web"}}}}}, excluded: map[string]time.Time{"/a": until}}
	s := serverOf(t, f)
	for path, want := range map[string]string{
		"/v1/workloads": `"labels":{"container":"web"}`, "/v1/workloads/none/why": `"error"`, "/v1/workloads/a/why": `"earlier":[]`, "/v1/healthz": `"alive"`, "/v1/nothing": `"error"`,
	} {
		if got := ask(s, s.Handler(), root, "GET", path).Body.String(); !strings.HasPrefix(got, `{"schema":1,`) || !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}
