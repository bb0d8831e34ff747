// SPDX-License-Identifier: Apache-2.0

// Package shapetest gives tests the shapes of the lab (lab/shapes).
//
// It is NOT for: tests of package machine itself, which it imports, or product code.
package shapetest
