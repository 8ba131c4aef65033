package measure

import "testing"

// A setting that costs ten times as much is no better if its error is the same, though the doubt about it is smaller.
func TestRecommend(t *testing.T) {
	present := &Trial{Cost: 200, Error: 0.0108, Bound: 0.0179, Usable: true}
	dearer := &Trial{Cost: 2000, Error: 0.0108, Bound: 0.0138, Usable: true}
	for _, asked := range []float64{0, 0.014} {
		s := &search{o: &Search{Error: asked}, ref: &reference{}, out: &Comparison{Error: 0.0141, Present: present, Lines: []*Line{{Trials: []*Trial{present, dearer}}}}}
		s.recommend()
		if want := asked > 0; (s.out.Best == dearer) != want || !want && s.out.Best != nil {
			t.Errorf("asked for %g: %+v", asked, s.out.Best)
		}
	}
}
