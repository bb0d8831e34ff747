// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
)

// fakeAPI answers as an agent does, and returns its socket and the requests that came.
func fakeAPI(t *testing.T, answer func(r *http.Request) (int, string)) (socket string, asked *[]string) {
	t.Helper()
	socket, asked = filepath.Join(t.TempDir(), "s"), &[]string{}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.URL.EscapedPath()+"?"+r.URL.RawQuery)
		code, text := answer(r)
		w.WriteHeader(code)
		fmt.Fprint(w, text)
	}))
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return socket, asked
}

func TestExcludeAndInclude(t *testing.T) {
	socket, asked := fakeAPI(t, func(r *http.Request) (int, string) {
		switch {
		case strings.Contains(r.URL.Path, "none"):
			return 404, `{"error":"unknown workload"}`
		case r.Method == http.MethodPut:
			return 200, `{"schema":1,"workload":"/a/b","until":"2026-01-02T15:04:05Z"}`
		}
		return 200, `{"schema":1,"workload":"/a/b","until":null}`
	})
	for _, c := range []struct {
		args, want, request string
		code                int
	}{
		{"exclude /a/b --for 2h", "/a/b is not bound until 2026-01-0", "PUT /v1/workloads/%2Fa%2Fb/exclusion?for=2h0m0s", exit.Done},
		{"exclude /a/b -o json", `{"schema":1,"workload":"/a/b","until":"2026-01-02T15:04:05Z"}`, "PUT /v1/workloads/%2Fa%2Fb/exclusion?for=1h0m0s", exit.Done},
		{"include b", "/a/b may be bound again", "DELETE /v1/workloads/b/exclusion?", exit.Done},
		{"include b -o yaml", "schema: 1\nworkload: /a/b\nuntil: null", "DELETE /v1/workloads/b/exclusion?", exit.Done},
		{"exclude none", "exclude: unknown workload", "PUT /v1/workloads/none/exclusion?for=1h0m0s", exit.Bad},
	} {
		*asked = nil
		code, out, errs := clitest.Run(rootCommand(), append(strings.Fields(c.args), "--socket", socket)...)
		if code != c.code || !strings.Contains(out+errs, c.want) || len(*asked) != 1 || (*asked)[0] != c.request {
			t.Errorf("%s: exit code %d, %s%s, asked %q", c.args, code, out, errs, *asked)
		}
	}
	for args, want := range map[string]string{"exclude /a --for 0s": "1h30m", "exclude": "a workload", "include": "a workload", "exclude a --socket /no/such": "no agent is at /no/such: start 'homenode agent'"} {
		if code, _, errs := clitest.Run(rootCommand(), strings.Fields(args)...); code != exit.Bad || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", args, code, errs)
		}
	}
}
