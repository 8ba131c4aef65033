//go:build long

package test

import "testing"

func TestSoak(t *testing.T)          { testSoak(t) }
func TestIsolatedAlike(t *testing.T) { testIsolatedAlike(t) }
func TestLargeStack(t *testing.T)    { testLargeStack(t) }
