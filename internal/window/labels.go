// SPDX-License-Identifier: Apache-2.0

package window

import "strings"

// Labels are what the manager of a cgroup calls the workload in it. "" is unknown, or
// there is no such name. They come from whoever made the container: print them through
// render.
type Labels struct {
	Unit      string `json:"unit,omitempty"`      // of systemd: "nginx.service"
	Container string `json:"container,omitempty"` // its name, not its id
	Pod       string `json:"pod,omitempty"`       // of Kubernetes
	Namespace string `json:"namespace,omitempty"` // of Kubernetes, or of containerd
}

// Label is one of them.
type Label struct{ Name, Value string }

// All are those that are known.
func (l Labels) All() (known []Label) {
	for _, x := range []Label{{"unit", l.Unit}, {"namespace", l.Namespace}, {"pod", l.Pod}, {"container", l.Container}} {
		if x.Value != "" {
			known = append(known, x)
		}
	}
	return known
}

// String is "shop/cart-0/app", or the unit; "" where nothing is known.
func (l Labels) String() string {
	var parts []string
	for _, x := range l.All() {
		if x.Name != "unit" || l.Container == "" {
			parts = append(parts, x.Value)
		}
	}
	return strings.Join(parts, "/")
}
