//go:build long

package exact

import "testing"

func TestHaidStatements(t *testing.T) { testHaidStatements(t) }
