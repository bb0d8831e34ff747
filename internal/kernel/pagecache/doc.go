// SPDX-License-Identifier: Apache-2.0

// Package pagecache finds the files whose pages a workload has in memory, and maps those
// pages here, so that unmapped pages can be located and moved.
//
//	/proc/PID/{maps,map_files,fd} ─▶ files, each once ─▶ mmap, mincore: the cached pages ─▶ addresses here
//
// A file is opened only after it is known to be a regular file or a block device, and
// never on a file system whose files act when they are opened (proc, sysfs, …).
//
// It is NOT for: moving them (migrate), or reading what is not cached.
package pagecache
