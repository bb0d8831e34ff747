// SPDX-License-Identifier: Apache-2.0

package machine

// NodePackage is the package of a node: an index into Packages. Distances do not tell it: the
// nodes of one package are at 11 to 17 from each other, and those of two at 16 and more
// (an Opteron's). Of a node without CPUs it is that of the CPUs next to it (NearCPUs).
// Unknown where these have no package or several.
func (m Machine) NodePackage(id int) (int, bool) {
	cpus, _ := m.NearCPUs(id)
	found := -1
	for i, p := range m.Packages {
		if !p.Overlaps(cpus) {
			continue
		}
		if found >= 0 {
			return 0, false
		}
		found = i
	}
	return found, found >= 0
}
