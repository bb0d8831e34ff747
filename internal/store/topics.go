// SPDX-License-Identifier: Apache-2.0

package store

// Topics are all topics, in the order in which a person asks.
var Topics = []Topic{Services, Gain, Features, Instances, Hosts, HostBins, Workloads, Nodes, History, Events, Unbound}

// These are for pictures: a map of 100,000 hosts takes some 130 rows, and a host is drawn
// by its nodes.
const (
	HostBins Topic = "host-bins" // number of hosts by how far their nodes are apart and by their remote access ratio, in steps of 0.1
	Nodes    Topic = "nodes"     // one host's nodes
)

// BinStep is how wide a bin of HostBins is.
const BinStep = 0.1

var abouts = map[Topic]string{
	Services:  "each service: instances, hosts, local access ratio, traffic, gain, time unbound; worst ratio first",
	Gain:      "each service: what its remote reads cost, and what binding would save of its CPU time; most first",
	Features:  "each service: what a model of gains learns from: bandwidth, stalls, memory, remote reads",
	Instances: "one --service's workloads on all hosts, worst ratio first",
	Hosts:     "each host: how far its nodes are apart, remote access ratio, workloads, last heard of; farthest first",
	HostBins:  "number of hosts by how far their nodes are apart and by remote access ratio, in steps of 0.1",
	Workloads: "one --host's workloads with their nodes; most CPU time first",
	Nodes:     "one --host's NUMA nodes",
	History:   "one --service, or one --workload of one --host, by time",
	Events:    "decisions and outcomes with the sentence why, newest first",
	Unbound:   "workloads that were unbound, when and why, newest first",
}

// About is what a topic answers; "" is no topic.
func (t Topic) About() string { return abouts[t] }
