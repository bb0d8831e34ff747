// SPDX-License-Identifier: Apache-2.0

package procfs

// AppendPIDs reads cgroup.procs, cgroup.threads or tasks, one id a line, and
// appends them to dst. v2 prints 0 for a process outside our pid namespace:
// those are left out. On error dst comes back as it was.
func AppendPIDs(dst []int, data []byte) ([]int, error) {
	was := dst
	for n, line := range lines(data) {
		pid, err := number(line)
		if err != nil || pid > 1<<31-1 {
			return was, malformed("cgroup.procs", n, line, errNumber)
		}
		if pid > 0 {
			dst = append(dst, int(pid))
		}
	}
	return dst, nil
}
