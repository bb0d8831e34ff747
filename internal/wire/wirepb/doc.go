// SPDX-License-Identifier: Apache-2.0

// Package wirepb is what protoc makes of hub.proto: the messages between agents and the hub.
//
//	hub.proto ── scripts/wire.sh ──▶ hub.pb.go (messages), hub.connect.go (client and service)
//
// Not for: checking what arrives (wire).
package wirepb
