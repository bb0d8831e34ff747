// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"
	"time"
)

// On a terminal there is one line. In a log each stage has a line, and another
// one every minute.
func TestStatusLine(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	l := &StatusLine{w: &out, Every: time.Minute, Clock: func() time.Time { return now }}
	for _, s := range []struct {
		stage, text string
		later       time.Duration
	}{{"a", "a1", 0}, {"a", "a2", 0}, {"b", "b1", 0}, {"b", "b2", 59 * time.Second}, {"b", "b3", time.Second}, {"b", "b4", 0}} {
		now = now.Add(s.later)
		l.Show(s.stage, s.text)
	}
	l.Clear()
	l.Show("c", "c1")
	if got := out.String(); got != "a1\nb1\nb3\n" {
		t.Errorf("a log has %q", got)
	}
	out.Reset()
	l = &StatusLine{w: &out, tty: true, Clock: time.Now}
	l.Show("a", "a1")
	l.Show("a", "a2")
	l.Clear()
	l.Show("a", "a3")
	if got := out.String(); got != "\r\x1b[Ka1\r\x1b[Ka2\r\x1b[K" {
		t.Errorf("a terminal gets %q", got)
	}
}
