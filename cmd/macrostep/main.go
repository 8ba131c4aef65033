// Command macrostep couples FMUs and runs them; macrostep help tells how.
package main

import (
	"os"

	"github.com/macrostep/macrostep/cmd/macrostep/app"
)

func main() { app.Main(os.Args[1:], app.Options{}) }
