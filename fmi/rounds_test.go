package fmi

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/description"
)

// The layouts that the trampolines know.
func TestRoundsLayout(t *testing.T) {
	var r rounds
	var m roundMember
	var x roundExtras
	if unsafe.Sizeof(r) > unsafe.Sizeof(cell{}.content) || batchSize > unsafe.Sizeof(cell{}.content) || unsafe.Sizeof(cell{}) != cellSize {
		t.Errorf("rounds take %d bytes and batches %d of %d", unsafe.Sizeof(r), batchSize, cellSize)
	}
	for name, at := range map[string][2]uintptr{
		"index": {unsafe.Offsetof(r.index), 8}, "h": {unsafe.Offsetof(r.h), 40}, "count": {unsafe.Offsetof(r.count), 56},
		"nsegments": {unsafe.Offsetof(r.nsegments), 80}, "done": {unsafe.Offsetof(r.done), 88}, "at": {unsafe.Offsetof(r.at), 96},
		"call": {unsafe.Offsetof(r.call), 108}, "other": {unsafe.Offsetof(r.other), 112}, "unusual": {unsafe.Offsetof(r.unusual), 124},
		"end": {unsafe.Offsetof(r.end), 136}, "mask": {unsafe.Offsetof(r.mask), 144}, "stamp": {unsafe.Offsetof(r.stamp), 160}, "stop": {unsafe.Offsetof(r.stop), 168},
		"roundsTag": {unsafe.Offsetof(r.tag), 176}, "memberTag": {unsafe.Offsetof(m.tag), 120}, "callTag": {unsafe.Offsetof(roundCall{}.tag), 32},
		"batchTag": {unsafe.Offsetof(batch{}.tag), 48}, "recordTag": {unsafe.Offsetof(record{}.tag), 104}, "record": {unsafe.Sizeof(record{}), 112},
		"member": {unsafe.Sizeof(m), 128}, "scaled": {unsafe.Offsetof(m.scaled), 12}, "nout": {unsafe.Offsetof(m.nout), 36},
		"comp": {unsafe.Offsetof(m.comp), 48}, "get": {unsafe.Offsetof(m.get), 64}, "noRestore": {unsafe.Offsetof(m.noRestore), 92},
		"ticks": {unsafe.Offsetof(m.ticks), 104}, "flags": {unsafe.Offsetof(m.flags), 112},
		"getters": {unsafe.Offsetof(x.getters), 8}, "move": {unsafe.Offsetof(x.move), 16}, "getter": {unsafe.Offsetof(x.getter), 32},
		"copy": {unsafe.Sizeof(roundCopy{}), 16}, "scaling": {unsafe.Sizeof(roundScaling{}), 32}, "moves": {unsafe.Sizeof(roundMove{}), 24},
		"calls": {unsafe.Sizeof(roundCall{}), 40}, "segment": {unsafe.Sizeof(roundSegment{}), 16},
	} {
		if at[0] != at[1] {
			t.Errorf("%s is at %d, the trampolines look at %d", name, at[0], at[1])
		}
	}
}

// undriven is members without input derivatives.
func undriven(tb testing.TB, n int, o InstanceOptions) []*Stepper {
	p := plan
	p.DerivativeOrders, p.DerivativeIn = 0, nil
	s := members(tb, n, o)
	for k := range s {
		s[k] = stepper(tb, s[k].in, p)
	}
	return s
}

// ring is the plan of a round in which each of n steppers takes all its inputs from
// the one before: one Real as it is, one scaled. jacobi: all copies come first.
func ring(s []*Stepper, jacobi bool, rows int) RoundPlan {
	p := RoundPlan{Steppers: s, Start: 0.25, Step: 0.1, Rows: rows}
	var all []Turn
	for k := range s {
		from := (k + len(s) - 1) % len(s)
		all = append(all, Turn{
			Reals:    []RealCopy{{from, 3, k, 0, 1, 0}, {from, 2, k, 1, -0.3, 0.1}},
			Integers: []IntegerCopy{{from, 0, k, 0}}, Booleans: []IntegerCopy{{from, 0, k, 0}},
			Stepper: k, Judged: 4,
		})
	}
	if !jacobi {
		p.Turns = all
		return p
	}
	copies := Turn{Stepper: -1}
	for k := range all {
		copies.Reals = append(copies.Reals, all[k].Reals...)
		copies.Integers = append(copies.Integers, all[k].Integers...)
		copies.Booleans = append(copies.Booleans, all[k].Booleans...)
		all[k] = Turn{Stepper: k, Judged: 4}
	}
	p.Turns = append([]Turn{copies}, all...)
	return p
}

// byHand takes one round of a plan stepper by stepper, up to the first that fails.
func byHand(p *RoundPlan, i int) (failed int, st Status, err error) {
	at := func(i int) float64 { return p.Start + float64(float64(i)*p.Step) }
	for k, turn := range p.Turns {
		for _, c := range turn.Reals {
			v := p.Steppers[c.From].RealOut[c.Out]
			if c.Gain != 1 || c.Offset != 0 {
				v = float64(c.Gain*v) + c.Offset
			}
			p.Steppers[c.To].RealIn[c.In] = v
		}
		for _, c := range turn.Integers {
			p.Steppers[c.To].IntegerIn[c.In] = p.Steppers[c.From].IntegerOut[c.Out]
		}
		for _, c := range turn.Booleans {
			p.Steppers[c.To].BooleanIn[c.In] = int32(flag(p.Steppers[c.From].BooleanOut[c.Out] != 0))
		}
		if turn.Stepper < 0 {
			continue
		}
		if st, err = p.Steppers[turn.Stepper].Step(at(i), p.Step, true); err != nil || st > StatusWarning {
			return k, st, err
		}
	}
	return -1, StatusOK, nil
}

func TestRounds(t *testing.T) {
	if runRounds == nil {
		_, err := NewRounds(ring(undriven(t, 2, InstanceOptions{}), true, 0))
		if !errors.Is(err, ErrNoRounds) {
			t.Error(err)
		}
		return
	}
	const n, total, rows = 3, 40, 16
	for _, jacobi := range []bool{true, false} {
		for _, fn := range []function{fnSetReal, fnSetInteger, fnSetBoolean, fnDoStep, fnGetReal, fnGetInteger, fnGetBoolean} {
			for _, st := range []Status{StatusOK, StatusWarning, StatusDiscard, StatusErr, StatusPending, StatusFatal, Status(50)} {
				name := fmt.Sprint(jacobi, fn, st)
				var ca, cb collector
				a, b := undriven(t, n, InstanceOptions{Log: ca.log}), undriven(t, n, InstanceOptions{Log: cb.log})
				pa, pb := ring(a, jacobi, rows), ring(b, jacobi, 0)
				for k := range n {
					fill(a[k], uint64(k))
					fill(b[k], uint64(k))
				}
				r, err := NewRounds(pa)
				must(t, err)
				for i := 0; i < total; {
					if i == 20 {
						fail(t, a[1].in, fn, st, 1)
						fail(t, b[1].in, fn, st, 1)
					}
					asked := min(1+i%7, 20-i%20)
					done, finite, failed, got, err := r.Run(i, asked, i%3 > 0)
					ended := false
					for j := range asked {
						at, want, werr := byHand(&pb, i+j)
						if at < 0 {
							if i%3 > 0 && j < done {
								r.Show(j)
								for k := range n {
									if outputs(a[k]) != outputs(b[k]) {
										t.Fatalf("%s: round %d, member %d: row %s, one by one %s", name, i+j, k, outputs(a[k]), outputs(b[k]))
									}
								}
							}
							continue
						}
						if j != done || at != failed || want != got || fmt.Sprint(err) != fmt.Sprint(werr) {
							t.Fatalf("%s: round %d ends at turn %d with %v, %v; in one crossing %d rounds, turn %d with %v, %v", name, i+j, at, want, werr, done, failed, got, err)
						}
						ended = true
						break
					}
					r.Show(-1)
					if !finite || !ended && (done != asked || failed >= 0 || err != nil) {
						t.Fatalf("%s: from round %d: %d of %d done, finite %v, turn %d: %v", name, i, done, asked, finite, failed, err)
					}
					for k := range n {
						if outputs(a[k]) != outputs(b[k]) || a[k].in.State() != b[k].in.State() {
							t.Fatalf("%s: after round %d, member %d: %s %v, one by one %s %v", name, i+done-1, k, outputs(a[k]), a[k].in.State(), outputs(b[k]), b[k].in.State())
						}
					}
					if ended {
						break
					}
					i += done
				}
				if x, y := strings.Join(ca.texts(), "\n"), strings.Join(cb.texts(), "\n"); x != y {
					t.Errorf("%s: said %q, one by one %q", name, x, y)
				}
				if a[0].Ticks() == 0 || a[2].in.Ticks() < a[2].Ticks() {
					t.Errorf("%s: no time was counted", name)
				}
			}
		}
	}
}

// The crossing ends with the round in which an output is no finite number.
func TestRoundsFinite(t *testing.T) {
	if runRounds == nil {
		return // no crossing to end
	}
	s := undriven(t, 2, InstanceOptions{})
	p := RoundPlan{Steppers: s, Step: 1, Turns: []Turn{{Stepper: 0, Judged: 4}, {Stepper: 1, Judged: 4, Reals: []RealCopy{{0, 1, 1, 0, 1e300, 0}}}}}
	s[0].RealIn[0] = 1e200
	r, err := NewRounds(p)
	must(t, err)
	done, finite, failed, _, err := r.Run(0, 10, false)
	if done != 1 || finite || failed >= 0 || err != nil {
		t.Errorf("%d rounds, finite %v, turn %d: %v; outputs %v", done, finite, failed, err, s[1].RealOut)
	}
}

// Another goroutine ends a crossing after the round under way.
func TestRoundsStop(t *testing.T) {
	if runRounds == nil {
		return
	}
	s := undriven(t, 2, InstanceOptions{})
	r, err := NewRounds(ring(s, true, 0))
	must(t, err)
	const endless = 1 << 40
	over, ended := make(chan struct{}), make(chan struct{})
	go func() { // again and again, since Run may begin after the first
		defer close(ended)
		for {
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond):
				r.Stop()
			}
		}
	}()
	done, finite, failed, _, err := r.Run(0, endless, false)
	close(over)
	<-ended
	if done < 1 || done == endless || !finite || failed >= 0 || err != nil {
		t.Errorf("%d rounds, finite %v, turn %d: %v", done, finite, failed, err)
	}
	if done, _, _, _, err := r.Run(done, 100, false); done != 100 || err != nil {
		t.Errorf("the next crossing makes %d of 100 rounds: %v", done, err)
	}
}

// No member sees the floating-point modes that another one leaves, and Go neither.
func TestRoundsModes(t *testing.T) {
	if runRounds == nil {
		return
	}
	c := new(collector)
	s := undriven(t, 2, InstanceOptions{Log: c.log})
	var entered [2]float64
	for k, m := range s {
		must(t, m.in.SetInteger([]description.ValueReference{112, 113}, []int32{int32(1 - k), 1}))
	}
	r, err := NewRounds(RoundPlan{Steppers: s, Step: 1, Turns: []Turn{{Stepper: 0}, {Stepper: 1}}})
	must(t, err)
	if done, _, _, _, err := r.Run(0, 200, false); done != 200 || err != nil {
		t.Fatal(done, err)
	}
	for k, m := range s {
		must(t, m.in.GetReal([]description.ValueReference{20}, entered[k:k+1]))
	}
	if entered[0] != entered[1] {
		t.Errorf("the FMUs were entered in rounding modes %v and %v", entered[0], entered[1])
	}
	if third := 1 / float64(len(s)+1); third != 1./3 {
		t.Errorf("Go rounds 1/3 to %v", third)
	}
	if said := strings.Count(strings.Join(c.texts(), "\n"), "floating-point modes"); said != 1 {
		t.Errorf("said %d times: %q", said, c.texts())
	}
}

// A crossing allocates nothing.
func TestRoundsAllocations(t *testing.T) {
	if runRounds == nil {
		return
	}
	s := undriven(t, 3, InstanceOptions{})
	r, err := NewRounds(ring(s, true, 8))
	must(t, err)
	i := 0
	if n := testing.AllocsPerRun(100, func() {
		if done, _, _, _, err := r.Run(i, 8, true); done != 8 || err != nil {
			t.Fatal(done, err)
		}
		r.Show(3)
		i += 8
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// A Warning without a message is told once, of the first call that gave one, and what
// cannot be known of it is not made up.
func TestRoundsWarning(t *testing.T) {
	if runRounds == nil {
		return
	}
	for want, flags := range map[string]uint32{
		"fmi2SetReal returns Warning and does not log why":                                                          warnedSet | warnedDo | warnedGet,
		"fmi2SetInteger or fmi2SetBoolean or fmi2GetInteger or fmi2GetBoolean returns Warning and does not log why": warnedOther | warnedDo,
		"fmi2DoStep returns Warning and does not log why":                                                           warnedDo | warnedGet,
	} {
		c := new(collector)
		r, err := NewRounds(ring(undriven(t, 2, InstanceOptions{Log: c.log}), false, 0))
		must(t, err)
		for range 2 {
			r.members[1].flags = flags
			r.tell()
		}
		if got := c.texts(); len(got) != 1 || !strings.HasSuffix(got[0], ": "+want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
}
