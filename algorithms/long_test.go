//go:build long

package algorithms

import "testing"

func TestSpuriousShare(t *testing.T) { testSpuriousShare(t) }
