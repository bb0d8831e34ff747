// SPDX-License-Identifier: Apache-2.0

// Package page shows a fleet in a browser.
//
//	URL (all of the state) ─▶ a few questions to the store ─▶ tables, pictures ─▶ HTML
//
//	/            services: local access ratio × traffic × gain, worst first
//	/service     one service: by time, and its instances
//	/hosts       how far hosts' nodes are apart: a map of all, and a list
//	/host        one host: its nodes, and its workloads on them
//	/workload    one workload by time
//	/events      what was decided and done, with the sentence why
//	/health      what the hub refused, and how it is
//
// A page works without a script: sorting, filtering and paging are links and a form, and a link
// to a page shows the same page. Everything that grows with the fleet is added up in the store:
// a page asks it at most five questions, of a bounded number of rows each. The policy that
// comes with a page lets it load and run nothing but the hub's own style and script.
//
// Names are bytes of hosts that may be hostile: html/template and render's canvas escape them.
//
// Not for: what the questions mean (store), or who may look (query.Access).
package page
