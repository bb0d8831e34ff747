// SPDX-License-Identifier: Apache-2.0

// Package ownertest has what the tests of owners that ask a manager share.
//
// It is NOT for: the managers themselves. What Docker answers is faked by docker's own tests.
package ownertest
