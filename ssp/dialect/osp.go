package dialect

import (
	"net/url"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
)

const (
	typeOSP = "com.opensimulationplatform"
	nsOSP   = "http://opensimulationplatform.com/SSP/OSPAnnotations"
	// Vico reads the hints of OSP and its own (ssp 44).
	typeVico = "com.github.ntnu-ihb.vico"
)

// proxied returns the file in a source "proxyfmu://localhost?file=a.fmu" of OSP: an FMU in a
// separate process on this machine.
func proxied(source string) (file string, ok bool) {
	u, err := url.Parse(source)
	if err != nil || u.Scheme != "proxyfmu" || u.Hostname() != "localhost" {
		return "", false
	}
	return strings.CutPrefix(u.RawQuery, "file=")
}

// osp reads the annotations of OSP and Vico.
type osp struct{ asked []ssp.Asked }

var _ ssp.Annotations = (*osp)(nil)

// Read takes algorithms at the experiment and hints at components.
func (o *osp) Read(p *ssp.Reader, a ssp.Annotation, at ssp.Site, _ string) (hints []ssp.StepHint, taken bool) {
	switch {
	case at == ssp.AtExperiment && a.Type == typeOSP:
		o.experiment(p, a)
		return nil, true
	case at == ssp.AtComponent && (a.Type == typeOSP || a.Type == typeVico):
		for _, k := range a.Node().Kids {
			if k.Name == "StepSizeHint" {
				hints = append(hints, hint(p, k, "value", a.Type+" StepSizeHint")...)
			} else {
				p.Add(ssp.RuleForeignPart, k, "the setting %q is not known", k.El.FullTag())
			}
		}
		return hints, true
	}
	return nil, false
}

// Settings returns the macro step.
func (o *osp) Settings([]*ssp.FlatComponent, bool, *diag.List) []ssp.Asked { return o.asked }

// experiment reads osp:Algorithm (ssp 43).
func (o *osp) experiment(p *ssp.Reader, a ssp.Annotation) {
	for _, k := range a.Node().Kids {
		if k.Name != "Algorithm" {
			p.Add(ssp.RuleForeignPart, k, "the setting %q of OSP is not known", k.El.FullTag())
			continue
		}
		for _, kk := range k.Kids {
			if kk.Name != "FixedStepAlgorithm" {
				p.Add(ssp.RuleForeignPart, kk, "the algorithm %q of OSP is not supported", kk.El.FullTag())
				continue
			}
			o.asked = append(o.asked, step(p, kk, "baseStepSize", typeOSP)...)
			if n, ok := kk.Attr("numWorkerThreads"); ok {
				p.Add(ssp.RuleForeign, kk, "numWorkerThreads=%q of OSP has no effect: use --workers, to suit the machine", n)
			}
		}
	}
}
