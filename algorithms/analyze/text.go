package analyze

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/algorithms/analyze/scan"
)

// Flags returns the flags of macrostep run that select the strategy.
func (s *Strategy) Flags() string {
	return fmt.Sprintf("--algorithm %s --param order=%d", s.Preset, s.Order) + SettingFlags(s.Params, s.Rates)
}

// SettingFlags returns the flags of macrostep run for parameters and rates.
func SettingFlags(params map[string]string, rates []string) (flags string) {
	for _, key := range slices.Sorted(maps.Keys(params)) {
		flags += fmt.Sprintf(" --param %s=%s", key, params[key])
	}
	for _, rate := range rates {
		if flags += " --rate "; strings.ContainsAny(rate, " '") {
			rate = strconv.Quote(rate) // for the shell
		}
		flags += rate
	}
	return flags
}

// Ranges describes the ranges of stable steps.
func (s *Strategy) Ranges(in *Report) string {
	switch {
	case len(s.Points) == 0:
		return "unknown"
	case len(s.Stable) == 0 && s.Multiples > 0:
		return fmt.Sprintf("none of %d whole multiples of %.4g s", len(s.Points), s.Multiples)
	case len(s.Stable) == 0 && s.Points[0].Step > in.From*(1+1e-9):
		return fmt.Sprintf("unknown below %.4g s, none from there", s.Points[0].Step)
	case len(s.Stable) == 0:
		return "none"
	}
	var out []string
	for _, r := range s.Stable {
		out = append(out, s.rangeText(r, in))
	}
	if s.Multiples > 0 {
		return fmt.Sprintf("%s; only whole multiples of %.4g s are known", strings.Join(out, ", "), s.Multiples)
	}
	return strings.Join(append(out, s.gapTexts()...), ", ")
}

// rangeText describes a stable range.
func (s *Strategy) rangeText(r scan.Range, in *Report) string {
	single := r.To <= r.From*(1+1e-9)
	switch {
	case s.Multiples > 0 && single:
		return fmt.Sprintf("%.4g s", r.From)
	case s.Multiples > 0:
		return fmt.Sprintf("%.4g, …, %.4g s", r.From, r.To)
	case single:
		return fmt.Sprintf("%.4g s, else unknown", r.From)
	}
	lowest, highest := r.From <= in.From*(1+1e-9), r.To >= in.To*(1-1e-9)
	text := fmt.Sprintf("%.4g to %.4g s", r.From, r.To)
	switch {
	case lowest && highest:
		text = fmt.Sprintf("all of %.3g to %.3g s", r.From, r.To)
	case lowest:
		text = fmt.Sprintf("up to %.4g s", r.To)
	case highest:
		text = fmt.Sprintf("from %.4g s on", r.From)
	}
	if !highest && r.To >= s.Points[len(s.Points)-1].Step {
		text += ", then unknown"
	}
	return text
}

// gapTexts describes the gaps between known steps, many of them in one text.
func (s *Strategy) gapTexts() (out []string) {
	var gaps []scan.Gap
	for _, g := range s.Gaps {
		if between(s, g) {
			gaps = append(gaps, g)
		}
	}
	if n := len(gaps); n > mostGaps {
		return []string{fmt.Sprintf("unknown at %d places from %.4g to %.4g s", n, gaps[0].From, gaps[n-1].To)}
	}
	for _, g := range gaps {
		if g.From == g.To {
			out = append(out, fmt.Sprintf("unknown at %.4g s", g.From))
		} else {
			out = append(out, fmt.Sprintf("unknown from %.4g to %.4g s", g.From, g.To))
		}
	}
	return out
}

// between reports whether a gap lies between known steps.
func between(s *Strategy, g scan.Gap) bool {
	return s.Points[0].Step < g.From && g.To < s.Points[len(s.Points)-1].Step
}

// mostGaps is how many gaps Ranges lists.
const mostGaps = 2
