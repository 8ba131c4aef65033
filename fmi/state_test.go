package fmi

import (
	"fmt"
	"testing"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/capi"
)

// If a member of a batch fails to save its state, those that others have saved are kept, and freed in the end: those
// before it, and where the members run in processes of their own those after it, too.
func TestSaveFails(t *testing.T) {
	for apart, kept := range map[bool][]bool{false: {true, false, false}, true: {true, false, true}} {
		f := plainFMU(t)
		_, err := f.Load(t.Context(), "")
		must(t, err)
		o := InstanceOptions{}
		if apart {
			o.Launcher = &directLauncher{}
		}
		var all []*Instance
		var steppers []*Stepper
		for k := range kept {
			in := instance(t, f, fmt.Sprint("m", k), o)
			start(t, in)
			all, steppers = append(all, in), append(steppers, stepper(t, in, plan))
		}
		must(t, all[1].SetInteger([]description.ValueReference{100, 101}, []int64{int64(capi.GetFMUState), int64(StatusErr)}))
		g, err := NewBatch(steppers)
		must(t, err)
		states := make([]*FMUState, len(all))
		if failed, err := g.Save(states); failed != 1 || err == nil {
			t.Errorf("apart %t: member %d failed: %v", apart, failed, err)
		}
		for k, s := range states {
			if (s != nil) != kept[k] || len(all[k].states) != map[bool]int{true: 1}[kept[k]] {
				t.Errorf("apart %t: member %d has the state %v, and keeps %d", apart, k, s, len(all[k].states))
			}
		}
		for _, in := range all {
			must(t, in.Free())
		}
		if left := export(t, &Instance{fmu: f}, "probe_states") & 0xff; left != 1 { // that of the failed call, whose handle is not valid
			t.Errorf("apart %t: %d states are left", apart, left)
		}
	}
}
