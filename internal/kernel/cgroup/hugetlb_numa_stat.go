// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"

	"homenode/internal/unit"
)

// HugetlbNumaStat names the file of a page size, as mem_fmt() of
// mm/hugetlb_cgroup.c spells it: hugetlb.2MB.numa_stat.
func HugetlbNumaStat(pageSize unit.Bytes) string {
	switch {
	case pageSize >= unit.GiB:
		return fmt.Sprintf("hugetlb.%dGB.numa_stat", pageSize/unit.GiB)
	case pageSize >= unit.MiB:
		return fmt.Sprintf("hugetlb.%dMB.numa_stat", pageSize/unit.MiB)
	}
	return fmt.Sprintf("hugetlb.%dKB.numa_stat", pageSize/unit.KiB)
}

// ParseHugetlbNumaStat reads a v2 cgroup's hugetlb pages of one size by node, in
// bytes, those of the cgroups below it included (since 5.17).
//
//	total=25165824 N0=0 N1=25165824
func ParseHugetlbNumaStat(data []byte) (map[int]unit.Bytes, error) {
	for key, rest := range keyed(data) {
		if len(key) < len("total=") || key[:len("total=")] != "total=" {
			continue
		}
		by, err := parseByNode(rest, 1)
		if err != nil {
			return nil, malformed("hugetlb.numa_stat", rest, err)
		}
		return by, nil
	}
	return nil, malformed("hugetlb.numa_stat", data, errNoLine)
}
