// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"homenode/internal/unit"
)

// Config says where an agent sends what it sees.
type Config struct {
	// Address of the hub, such as https://hub.example:7443. Empty: nothing is sent.
	Address string `yaml:"address"`
	// Certificate of the hub's authority (PEM).
	CA string `yaml:"ca"`
	// Certificate of this host (PEM). 'homenode enrol' writes it, and the agent renews it.
	Certificate string `yaml:"certificate"`
	// Key of this host (PEM). Empty: it is in the file of the certificate.
	Key string `yaml:"key"`
	// Folder that keeps what the hub does not have yet. Empty: /var/lib/homenode/spool, or in the state folder if that is not the default.
	Spool string `yaml:"spool"`
	// What the spool may take on disk, 1MiB to 64GiB. When it is full, the oldest goes.
	Budget unit.Bytes `yaml:"budget"`
}

// On says that something is sent.
func (c Config) On() bool { return c.Address != "" }

// DefaultBudget is some twelve days of windows of 50 workloads each 10 s: 5 kB each.
const DefaultBudget = 512 * unit.MiB
