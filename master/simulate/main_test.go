package simulate_test

import (
	"os"
	"testing"

	"github.com/macrostep/macrostep/test/cc"
)

func TestMain(m *testing.M) {
	cc.Cache()
	os.Exit(m.Run())
}
