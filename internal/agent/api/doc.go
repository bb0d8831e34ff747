// SPDX-License-Identifier: Apache-2.0

// Package api answers local programs over a unix socket: HTTP, JSON, with an OpenAPI
// document made from the same table of routes and the same Go types.
//
//	curl --unix-socket /run/homenode/api.sock http://homenode/v1/status
//
//	socket 0660 root:GROUP ─▶ the peer (from the kernel) ─▶ route ─▶ agent.View, Health,
//	                          read: the socket's group            Reload, Exclude
//	                          write: root, or write_group
//
// A request never waits for the loop, nor the loop for a request: answers come from the
// view of the last round. Over TCP, if that is configured, there are only metrics and
// health.
//
// It uses net/http and a schema made by reflection, instead of huma. huma takes 2.3 MB
// more resident memory (8.0 against 5.7) and 1 MB more program. That would be fine, but
// huma knows nothing of types with a wire form of their own (unit.Value, unit.Opt, sets),
// which most of a status consists of.
package api
