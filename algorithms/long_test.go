//go:build long

package algorithms_test

import "testing"

func TestSpuriousShare(t *testing.T) { testSpuriousShare(t) }
