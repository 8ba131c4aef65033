//go:build long

package fmus

import "testing"

func TestBuildIsDeterministic(t *testing.T) { testBuildIsDeterministic(t) }
func TestSourcesAreWhole(t *testing.T)      { testSourcesAreWhole(t) }
