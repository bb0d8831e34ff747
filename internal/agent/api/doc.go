// SPDX-License-Identifier: Apache-2.0

// Package api answers local programs over a unix socket: HTTP, JSON, with an OpenAPI
// document made from the same table of routes and the same Go types.
//
//	curl --unix-socket /run/homenode/api.sock http://homenode/v1/status
//
//	socket 0660 root:GROUP ─▶ who connected (the kernel says) ─▶ route ─▶ agent.View, Health,
//	                          read: the socket's group            Reload, Exclude
//	                          write: root, or write_group
//
// A request never waits for the loop, nor the loop for a request: what is read is the
// view of the last round. Over TCP, if that is configured, there are metrics and health
// alone.
//
// net/http and a schema made by reflection, instead of huma: that costs 2.3 MB of
// resident memory more (8.0 against 5.7) and 1 MB of program, which would be fine, but
// knows nothing of types with a wire form of their own (unit.Value, unit.Opt, sets),
// which most of a status is made of.
package api
