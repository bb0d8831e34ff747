// SPDX-License-Identifier: Apache-2.0

// Package ca is the hub's own certificate authority: who a host is, and which hosts are let in.
//
//	folder/ ca.pem, ca-key.pem   the authority
//	        tokens/HASH          one-time tokens that wait: host and end; only the hash is kept
//	        revoked              hosts whose certificates of before a time are refused
//
//	enrol HOST ─▶ token ─▶ host: key + request ─▶ Redeem ─▶ certificate ─▶ Renew before it ends
//
// A host's identity is the one DNS name of its certificate. Replicas share the folder, or a
// copy: a token works where its file is. The list of revoked hosts is read again when its file
// changes.
//
// Not for: what a host may send (hub, wire).
package ca
