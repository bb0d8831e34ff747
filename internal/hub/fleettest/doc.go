// SPDX-License-Identifier: Apache-2.0

// Package fleettest makes up fleets for tests of the hub's faces.
//
//	Fleet ─▶ Batches: what its agents would send, for a real store
//	      └▶ Fake: a store that answers from the fleet at once, however large it is
//
// Everything is made from the names' numbers: the same fleet is the same each time. Its
// figures are no machine's. Not for: the simulator's worlds (sim), or conformance of stores.
package fleettest
