// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"
)

func TestBadWebhooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ to, text, want string }{
		{"", "", "https"}, {"hooks.example", "", "https"}, {"http://hooks.example/", "", "https"}, {"ftp://127.0.0.1/", "", "https"},
		{"https://hooks.example/", "{{.Nothing}}", "Nothing"}, {"https://hooks.example/", "{{", "message"},
	} {
		if _, err := New(c.to, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %q: %v", c.to, c.text, err)
		}
	}
	for _, good := range []string{"https://hooks.example/a", "http://127.0.0.1:8080/", "http://localhost/", "http://[::1]:80/"} {
		if _, err := New(good, ""); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}
