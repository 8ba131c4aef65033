package algorithms

import (
	"fmt"
	"github.com/macrostep/macrostep/master"
	"math"
	"testing"
)

func TestZZ(t *testing.T) {
	for _, name := range []string{"ff", "fd", "dd"} {
		for k := 0; k <= 3; k++ {
			for _, h := range []bool{true, false} {
				g := convergence(t, symmetric, name, Config{Scheme: Implicit, Order: k}, h, true)
				fmt.Println(name, k, h, g)
			}
		}
	}
	s := cut(uneven, "fd")
	e := newExplicit(t, Config{Scheme: Implicit, Order: 2})
	r, err := master.NewRun(s.system(t), e, master.Options{Stop: 1, Step: 1e-3})
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Run(t.Context())
	fmt.Printf("%+v %v\n", res, err)
	_ = math.Pi
}
