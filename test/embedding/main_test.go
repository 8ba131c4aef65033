// Package embedding tests programs that use macrostep as a library: the examples of the documentation,
// and many runs in one process.
package embedding

import (
	"flag"
	"os"
	"testing"

	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/test/cc"
)

// runs is how many runs of each kind are made in the process of the test.
var runs = flag.Int("runs", 10, "runs of each kind in one process")

func TestMain(m *testing.M) {
	cc.Cache()
	worker.Main()
	flag.Parse()
	os.Exit(m.Run())
}
