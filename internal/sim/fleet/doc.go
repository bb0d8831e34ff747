// SPDX-License-Identifier: Apache-2.0

// Package fleet is many simulated servers: services with replicas spread over them by a
// scheduler that does not know about NUMA, days of load, MAO on all of them, on some, or on
// none; and what each replica gained by it, for models to learn.
//
//	seed, servers, days, Host ─Generate─▶ Plan ─Specs(server)─▶ sim.World + arm.Loop ┐
//	                                                             server by server … ├─▶ Result
//	                                                             on all CPUs        ┘   Row …
//
// A fleet is made and run so:
//
//  1. A catalogue of services is drawn (service.go): what each does and needs.
//  2. The scheduler places their replicas and moves them about (plan.go). A Plan is some
//     24 bytes for each stay of a replica; what the replica does there is drawn again
//     whenever a server is simulated, so no fleet has to fit into memory.
//  3. Every server is a world of its own, with a seed of its own (server.go). They run in
//     parallel and their figures are added up in order (run.go): the same bytes with any
//     number of workers.
//  4. With a data set each server runs twice, with the same demand: with MAO, and with no
//     replica bound (sample.go). Features come from the latter, before any binding; gains
//     are the effect of the whole server's bindings (row.go: GainMeaning).
//  5. A change has an interval, by bootstrap over servers (change.go).
//  6. A data set is written as Parquet (table.go), with what made it: schema, generator,
//     seed. The same rows give the same bytes.
//  7. Trials (trial.go) are another data set of the same fleets: each replica bound alone, and with
//     all of its server, twice.
//
// The generator is frozen: what seed 1 means must not change, or models that were
// trained on it cannot be compared. A change to what it draws is a new
// GeneratorVersion, and a test holds its bytes. Its products are converted before they are
// added (float64(a*b) + c), so that a seed is the same fleet on every architecture.
//
// All figures are modelled.
//
// It is NOT for: one machine and its policies side by side (sim/scenario), files
// (cmd), or deciding which services to bind (the offline side).
package fleet
