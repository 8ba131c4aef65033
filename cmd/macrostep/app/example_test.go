package app_test

import (
	"os"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/cmd/macrostep/app"
)

// A program of one's own: macrostep with a preset that is explicit coupling of order 1 in
// substeps. docs/examples/algorithm adds an algorithm that is new.
func ExampleMain() {
	app.Main(os.Args[1:], app.Options{Presets: []algorithms.Preset{{
		Name: "fine", Doc: "Explicit coupling of order 1, sampled in substeps.",
		Params: []algorithms.Param{{Name: "substeps", Default: "10", Range: "1, 2, …", Doc: "substeps of a macro step"}},
		New: func(values map[string]string, with algorithms.With) (*algorithms.Choice, error) {
			return algorithms.New("explicit", map[string]string{"order": "1", "delivery": "substeps", "substeps": values["substeps"]}, with)
		},
	}}})
}
