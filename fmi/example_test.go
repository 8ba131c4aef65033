package fmi_test

import (
	"fmt"
	"log"
	"os"
	"runtime"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmus"
)

// One FMU without a master: a free mass of 400 kg, pulled down by 400 N for a second.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	check(err)
	defer os.RemoveAll(dir)
	path, err := fmus.Build(dir, "quarter_chassis_a") // any FMU; this one needs a C compiler
	check(err)

	f, findings, err := fmi.Open(path, fmi.OpenOptions{})
	check(err)
	fmt.Println(f.Description.ModelName, "with", len(findings.At(diag.Error)), "errors")

	runtime.LockOSThread() // all calls of an instance come from one thread
	defer runtime.UnlockOSThread()
	in, err := f.Instantiate("chassis", fmi.InstanceOptions{})
	check(err)
	check(in.SetupExperiment(fmi.Experiment{}))
	check(in.EnterInitializationMode())
	check(in.ExitInitializationMode())

	reference := func(name string) description.ValueReference {
		v, ok := f.Description.Variable(name)
		if !ok {
			log.Fatalf("there is no variable %s", name)
		}
		return v.ValueReference
	}
	s, err := in.NewStepper(fmi.StepPlan{
		RealIn:  []description.ValueReference{reference("F_c")},
		RealOut: []description.ValueReference{reference("z_c"), reference("v_c")},
	})
	check(err)
	s.RealIn[0] = 400
	const h = 0.25
	for k := range 4 {
		_, err := s.Step(float64(k)*h, h, true)
		check(err)
	}
	fmt.Printf("z = %.3f m, v = %.3f m/s\n", s.RealOut[0], s.RealOut[1])

	check(in.Terminate())
	check(in.Free())
	check(f.Close())
	// Output:
	// quarter_chassis_a with 0 errors
	// z = -0.500 m, v = -1.000 m/s
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
