// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"testing"
)

// The cost of a line: /proc/PID/numa_maps of a large process has 50,000.
func BenchmarkNumaLine(b *testing.B) {
	text := []byte("7fef9af9f000 default\n7fef9afa0000 default anon=1 dirty=1 active=0 N0=1 kernelpagesize_kB=4\n")
	data := bytes.Repeat(text, 1000)
	var l NumaLine
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		for n, line := range lines(data) {
			if err := l.Parse(n, line); err != nil {
				b.Fatal(err)
			}
		}
	}
}
