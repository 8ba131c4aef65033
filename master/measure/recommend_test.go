package measure

import "testing"

// Of settings that cost the same, the more accurate is better.
func TestRecommendMoreAccurate(t *testing.T) {
	trials := []*Trial{{Cost: 500, Error: 0.1, Bound: 0.1, Usable: true}, {Cost: 500, Error: 0.015, Bound: 0.02, Usable: true},
		{Cost: 500, Error: 0.0057, Bound: 0.007, Usable: true}, {Cost: 510, Error: 0.001, Bound: 0.001, Usable: true}}
	s := &search{o: &Search{}, ref: &reference{}, out: &Comparison{Error: 0.05, Present: trials[0], Lines: []*Line{{Trials: trials}}}}
	if s.recommend(); s.out.Best != trials[2] {
		t.Errorf("%+v", s.out.Best)
	}
}

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
